#include "services/billing/payments/webhook.h"

#include <optional>
#include <utility>

#include "common/base/workspace_id.h"
#include "common/json/json.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/stripe_json.h"
#include "services/billing/payments/stripe_signature.h"

namespace tollgate::billing::payments {
namespace {

constexpr size_t kMaxId = 255;
constexpr int64_t kLineUs = 60'000'000;

http::HttpResponse Answer(int status, std::string text) {
  http::HttpResponse response{.status = status, .body = std::move(text) + "\n"};
  response.headers.emplace_back("content-type", "text/plain");
  return response;
}

std::optional<ProviderEvent> ReadEvent(const std::string& body) {
  auto parsed = json::Document::ParseView(body);
  if (!parsed.ok()) return std::nullopt;
  const json::Value root = parsed->root();
  const json::Value object = root.Find("data").Find("object");
  ProviderEvent event;
  event.id = TextOf(root.Find("id"));
  event.type = TextOf(root.Find("type"));
  event.object = TextOf(object.Find("id"));
  if (event.id.empty() || event.id.size() > kMaxId || event.type.empty() ||
      event.type.size() > kMaxId || event.object.size() > kMaxId) {
    return std::nullopt;
  }
  const json::Value metadata = object.Find("metadata");
  event.payment = TextOf(metadata.Find(kPaymentKey));
  event.workspace = TextOf(metadata.Find(kWorkspaceKey));
  if (event.payment.size() > kMaxId) event.payment.clear();
  if (!IsWorkspaceId(event.workspace)) event.workspace.clear();
  if (event.type.starts_with("checkout.session.") && TextOf(object.Find("mode")) == "setup") {
    event.type = kSetupEvent;
  }
  return event;
}

// Whether the engine must process this event.
bool Matters(const ProviderEvent& event) {
  return event.type == kSetupEvent || event.type.starts_with("payment_intent.") ||
         event.type.starts_with("checkout.session.") || event.type.starts_with("charge.dispute.") ||
         IsRefundEvent(event.type) || IsFraudWarning(event.type);
}

}  // namespace

bool IsRefundEvent(std::string_view type) {
  return type.starts_with("refund.") || type.starts_with("charge.refund.");
}

bool IsFraudWarning(std::string_view type) {
  return type.starts_with("radar.early_fraud_warning.");
}

// Logs one line per minute, since anyone may call. The metric counts all calls.
void Webhook::LogRefused(std::string_view why, const std::string& peer) {
  const std::lock_guard lock(mutex_);
  ++unlogged_;
  const int64_t now_us = clock_.MonotonicUs();
  if (now_us < next_line_us_) return;
  next_line_us_ = now_us + kLineUs;
  log::Warn(why, {{"peer", peer}, {"since_the_last_line", std::exchange(unlogged_, 0)}});
}

http::HttpResponse Webhook::Handle(const http::HttpRequest& request, bool& accepted) {
  accepted = false;
  if (request.path != kWebhookPath) return Answer(404, "not found");
  if (request.method != "POST") return Answer(405, "only POST");
  if (request.body.size() > kMaxWebhookBytes) return Answer(400, "too large");
  const int64_t now_us = clock_.WallUs();
  if (!SignatureIsValid(request.header("stripe-signature"), request.body, secrets_, now_us)) {
    metrics_.OnWebhook("bad_signature");
    LogRefused("a webhook without a valid signature was refused", request.peer_address);
    return Answer(400, "the signature is not valid");
  }
  auto event = ReadEvent(request.body);
  if (!event) {
    metrics_.OnWebhook("malformed");
    log::Warn("a signed webhook is not an event of Stripe");
    return Answer(400, "not an event");
  }
  if (!Matters(*event)) {
    metrics_.OnWebhook("accepted");
    return Answer(200, "ignored");
  }
  event->received_us = event->check_us = now_us;
  auto added = store_.AddEvent(*event);
  if (!added.ok()) {
    metrics_.OnWebhook("unavailable");
    log::Warn("a webhook could not be stored; the provider sends it again",
              {{"error", added.error().message}});
    return Answer(503, "try again");
  }
  accepted = *added;
  metrics_.OnWebhook(*added ? "accepted" : "duplicate");
  return Answer(200, *added ? "accepted" : "known");
}

}  // namespace tollgate::billing::payments
