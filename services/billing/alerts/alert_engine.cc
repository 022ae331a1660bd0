#include "services/billing/alerts/alert_engine.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/time_units.h"
#include "common/observability/log.h"
#include "services/billing/alerts/alert_rules.h"
#include "services/billing/alerts/alert_text.h"

namespace tollgate::billing::alerts {
namespace {

constexpr int kBatch = 16;
constexpr int64_t kLongestWaitUs = 6 * 60 * kMinuteUs;
constexpr int64_t kGiveUpUs = int64_t{3} * 24 * 60 * kMinuteUs;

int64_t WaitUs(int64_t attempts) {
  return attempts > 9 ? kLongestWaitUs
                      : std::min(kLongestWaitUs, kMinuteUs << std::max<int64_t>(attempts - 1, 0));
}

}  // namespace

std::string DerivedId(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size()) + ":";
    text += part;
  }
  return HexEncode(Sha256(text)).substr(0, 32);
}

std::vector<AlertStore::Rendered> AlertEngine::Render(const Snapshot& snapshot,
                                                      int64_t now_us) const {
  std::vector<AlertStore::Rendered> rendered;
  const std::string& workspace = snapshot.setting.workspace;
  for (Step& step : Decide(snapshot.setting, snapshot.facts, snapshot.states)) {
    AlertStore::Rendered one;
    one.notify = step.notify;
    one.state = step.next;
    Delivery row;
    row.workspace = workspace;
    row.kind = Name(step.next.kind);
    // The id depends on the version of the state, so a transaction that runs twice makes one
    // notice.
    row.notice = DerivedId({"notice", workspace, row.kind, std::to_string(step.next.level),
                            std::to_string(step.next.version)});
    row.payload = NoticeJson(row.notice, step.next, snapshot.setting, snapshot.facts,
                             options_.dashboard_url, now_us);
    row.created_us = row.next_us = now_us;
    const auto add = [&](Channel channel, const std::string& target) {
      row.channel = channel;
      row.target = target;
      row.id = DerivedId({row.notice, Name(channel), target});
      one.deliveries.push_back(row);
    };
    const bool to_operator = step.next.kind == AlertKind::kBooksDisagree;
    if (!options_.mail.url.empty()) {
      for (const std::string& to : to_operator ? options_.operator_emails : snapshot.setting.emails)
        add(Channel::kMail, to);
    }
    if (!to_operator) {
      for (const std::string& id : snapshot.webhooks) add(Channel::kWebhook, id);
    }
    rendered.push_back(std::move(one));
  }
  return rendered;
}

void AlertEngine::Check(const std::string& workspace) {
  const int64_t now_us = NowUs();
  auto notified = store_.Run(workspace, now_us,
                             [&](const Snapshot& snapshot) { return Render(snapshot, now_us); });
  if (!notified.ok()) {
    log::Warn("alerts: a workspace could not be checked, retrying",
              {{"workspace", workspace}, {"error", notified.error().message}});
    return;
  }
  for (const AlertKind kind : *notified) {
    metrics_.OnNotice(kind);
    log::Info("alerts: a notice is due", {{"workspace", workspace}, {"kind", Name(kind)}});
  }
}

Sent AlertEngine::Send(const Delivery& delivery, bool& gone) {
  if (delivery.channel == Channel::kMail) {
    if (options_.mail.url.empty()) return {false, "failed: no mail server is configured"};
    return mail::SendMail(options_.mail, delivery.target, MailText(delivery, options_.mail.from),
                          options_.timeout_ms);
  }
  auto webhook = store_.FindWebhook(delivery.workspace, delivery.target);
  if (!webhook.ok()) return {false, "failed: the database did not answer"};
  if (!*webhook) {
    gone = true;
    return {false, "the webhook was deleted"};
  }
  if ((*webhook)->secret.empty()) {
    return {false, "failed: its secret was sealed with another key (alerts.seal_key_file)"};
  }
  WebhookCall call;
  call.url = (*webhook)->url;
  call.body = delivery.payload;
  call.notice = delivery.notice;
  call.signature = Sign((*webhook)->secret, NowUs() / 1'000'000, call.body);
  call.timeout_ms = options_.timeout_ms;
  call.allow_private = options_.allow_private;
  return SendWebhook(call);
}

void AlertEngine::Deliver(Delivery delivery) {
  bool gone = false;
  const Sent sent = Send(delivery, gone);
  const int64_t now_us = NowUs();
  DeliveryState state = DeliveryState::kWaiting;
  const char* result = "failed";
  if (sent.ok) {
    state = DeliveryState::kDelivered;
    result = "delivered";
  } else if (gone || now_us - delivery.created_us >= kGiveUpUs) {
    state = DeliveryState::kGivenUp;
    if (!gone) result = "given_up";
  }
  metrics_.OnDelivery(delivery.channel, result);
  if (!sent.ok) {
    log::Warn(state == DeliveryState::kGivenUp
                  ? "alerts: a notice was given up; all delivery attempts failed"
                  : "alerts: a notice could not be delivered, retrying",
              {{"workspace", delivery.workspace},
               {"notice", delivery.notice},
               {"channel", Name(delivery.channel)},
               {"result", sent.result}});
  }
  // If this fails, the claim expires and the notice is sent again under the same id.
  auto finished = store_.Finish(delivery, state, now_us + WaitUs(delivery.attempts),
                                sent.ok ? "" : sent.result);
  if (!finished.ok()) {
    log::Warn("alerts: the result of a delivery could not be stored",
              {{"notice", delivery.notice}, {"error", finished.error().message}});
  }
}

int AlertEngine::DeliverDue() {
  auto due = store_.Due(NowUs(), kBatch);
  if (!due.ok()) {
    log::Warn("alerts: the outbox cannot be read", {{"error", due.error().message}});
    return 0;
  }
  int tried = 0;
  for (Delivery& delivery : *due) {
    auto claimed = store_.Claim(delivery, NowUs() + options_.lease_us);
    if (!claimed.ok() || !*claimed) continue;
    Deliver(delivery);
    ++tried;
  }
  return tried;
}

Sent AlertEngine::Test(const AlertWebhook& webhook) {
  if (webhook.secret.empty()) {
    return {false, "failed: its secret was sealed with another key (alerts.seal_key_file)"};
  }
  WebhookCall call;
  call.notice = Id::New().ToHex();
  call.url = webhook.url;
  call.body = TestJson(call.notice, webhook.workspace, NowUs());
  call.signature = Sign(webhook.secret, NowUs() / 1'000'000, call.body);
  call.timeout_ms = options_.timeout_ms;
  call.allow_private = options_.allow_private;
  return SendWebhook(call);
}

}  // namespace tollgate::billing::alerts
