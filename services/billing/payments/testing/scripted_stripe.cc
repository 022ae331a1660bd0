#include "services/billing/payments/testing/scripted_stripe.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/crypto.h"
#include "common/json/writer.h"

namespace tollgate::billing::payments {
namespace {

std::string Decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      std::string hex(text.substr(i + 1, 2));
      for (char& c : hex) c = static_cast<char>(tolower(c));
      out += HexDecode(hex).value_or("?");
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::map<std::string, std::string> DecodeForm(std::string_view text) {
  std::map<std::string, std::string> form;
  while (!text.empty()) {
    const size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t equal = pair.find('=');
    form[Decode(pair.substr(0, equal))] =
        equal == std::string_view::npos ? "" : Decode(pair.substr(equal + 1));
  }
  return form;
}

}  // namespace

ScriptedStripe::ScriptedStripe(uint64_t seed) : random_(seed), loops_(2) {
  server_ = std::make_unique<http::Server>(
      loops_, http::ServerOptions{}, [this](http::Exchange& exchange) { return Serve(exchange); });
  loops_.Start();
  if (!server_->Listen("127.0.0.1:0").ok()) std::abort();
}

ScriptedStripe::~ScriptedStripe() { server_->Stop(); }

StripeOptions ScriptedStripe::options() const {
  StripeOptions options;
  options.base_url = "http://" + server_->address();
  options.secret_key = "sk_test_scripted";
  options.success_url = "https://example.test/paid";
  options.cancel_url = "https://example.test/back";
  options.timeout_ms = 60'000;
  return options;
}

void ScriptedStripe::SetFaults(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

void ScriptedStripe::SetNow(int64_t seconds) {
  const std::lock_guard lock(mutex_);
  now_ = seconds;
  for (const auto& [at, form] : late_) {
    if (at > now_) continue;
    (void)MakeIntent(form);
    intents_.at(order_.back()).late = true;
  }
  std::erase_if(late_, [&](const auto& one) { return one.first <= now_; });
}

void ScriptedStripe::DeclineCustomer(const std::string& customer, const std::string& code) {
  const std::lock_guard lock(mutex_);
  declines_[customer] = {code, ""};
}

void ScriptedStripe::DeclineCard(const std::string& card, const std::string& code,
                                 const std::string& advice) {
  const std::lock_guard lock(mutex_);
  declines_[card] = {code, advice};
}

void ScriptedStripe::SetRefundRefused(bool refused) {
  const std::lock_guard lock(mutex_);
  refund_refused_ = refused;
}

ScriptedStripe::Intent& ScriptedStripe::IntentOf(Session& session) {
  if (!session.intent.empty()) return intents_.at(session.intent);
  Intent intent;
  intent.id = NewId("pi");
  intent.customer = session.customer;
  intent.payment = session.payment;
  intent.workspace = session.workspace;
  intent.amount_cents = session.amount_cents;
  intent.created = now_;
  intent.session = session.id;
  session.intent = intent.id;
  order_.push_back(intent.id);
  return intents_[intent.id] = intent;
}

void ScriptedStripe::FailPage(const std::string& id, const std::string& code) {
  const std::lock_guard lock(mutex_);
  Intent& intent = IntentOf(sessions_.at(id));
  intent.status = "requires_payment_method";
  intent.decline_code = code;
  AddEvent("payment_intent.payment_failed", Render(intent));
}

std::string ScriptedStripe::RefundElsewhere(const std::string& intent, int64_t cents) {
  const std::lock_guard lock(mutex_);
  intents_.at(intent).refunded_cents += cents;
  RefundRow refund;
  refund.id = NewId("re");
  refund.intent = intent;
  refund.cents = cents;
  refunds_.push_back(refund);
  return refund.id;
}

void ScriptedStripe::FailRefund(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (RefundRow& refund : refunds_) {
    if (refund.id != id) continue;
    refund.status = "failed";
    intents_.at(refund.intent).refunded_cents -= refund.cents;
    AddEvent("refund.failed", Render(refund));
  }
}

void ScriptedStripe::PayPage(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Session& session = sessions_.at(id);
  if (session.status != "open") return;
  Intent& intent = IntentOf(session);
  intent.status = "succeeded";
  intent.decline_code.clear();
  session.status = "complete";
  AddEvent("payment_intent.succeeded", Render(intent));
  AddEvent("checkout.session.completed", Render(session));
}

void ScriptedStripe::ExpirePage(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Session& session = sessions_.at(id);
  if (session.status == "open") session.status = "expired";
  AddEvent("checkout.session.expired", Render(session));
}

std::string ScriptedStripe::SaveCard(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Session& session = sessions_.at(id);
  session.card = NewId("pm");
  session.status = "complete";
  AddEvent("checkout.session.completed", Render(session));
  return session.card;
}

std::string ScriptedStripe::Dispute(const std::string& intent, const std::string& status) {
  const std::lock_guard lock(mutex_);
  intents_.at(intent).disputed = true;
  const std::string id = NewId("du");
  disputes_[id] = {intent, status, intents_.at(intent).amount_cents, now_, now_ + 7 * 86'400};
  AddEvent("charge.dispute.created", json::Writer().Text("id", id).Done());
  return id;
}

void ScriptedStripe::WarnOfFraud(const std::string& intent) {
  const std::lock_guard lock(mutex_);
  const std::string id = NewId("issfr");
  disputes_[id] = {intent, "", 0, now_, 0};
  AddEvent("radar.early_fraud_warning.created", json::Writer().Text("id", id).Done());
}

void ScriptedStripe::CloseDispute(const std::string& dispute, const std::string& status) {
  const std::lock_guard lock(mutex_);
  disputes_.at(dispute).status = status;
  AddEvent("charge.dispute.closed", json::Writer().Text("id", dispute).Done());
}

std::string ScriptedStripe::ForeignCharge(int64_t cents) {
  const std::lock_guard lock(mutex_);
  Intent intent;
  intent.id = NewId("pi");
  intent.amount_cents = cents;
  intent.status = "succeeded";
  intent.created = now_;
  order_.push_back(intent.id);
  intents_[intent.id] = intent;
  return intent.id;
}

std::vector<ScriptedStripe::Intent> ScriptedStripe::intents(size_t without) const {
  const std::lock_guard lock(mutex_);
  std::vector<Intent> found;
  for (size_t i = without; i < order_.size(); ++i) found.push_back(intents_.at(order_[i]));
  return found;
}

int64_t ScriptedStripe::refunded_cents(const std::string& intent) const {
  const std::lock_guard lock(mutex_);
  return intents_.at(intent).refunded_cents;
}

int ScriptedStripe::calls() const { return calls("/"); }

int ScriptedStripe::calls(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(
      paths_.begin(), paths_.end(), [&](const std::string& one) { return one.starts_with(path); }));
}

std::vector<ScriptedStripe::Event> ScriptedStripe::TakeEvents() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::string ScriptedStripe::Sign(const std::string& secret, int64_t seconds,
                                 const std::string& body) {
  const std::string time = std::to_string(seconds);
  return "t=" + time + ",v1=" + HexEncode(HmacSha256(secret, time + "." + body));
}

std::string ScriptedStripe::NewId(const std::string& prefix) {
  return prefix + "_" + std::to_string(++next_);
}

void ScriptedStripe::AddEvent(const std::string& type, const std::string& object) {
  const std::string id = NewId("evt");
  const std::string body = json::Writer()
                               .Text("id", id)
                               .Text("type", type)
                               .Raw("data", json::Writer().Raw("object", object).Done())
                               .Done();
  events_.push_back({id, body});
}

Task<void> ScriptedStripe::Serve(http::Exchange& exchange) {
  Reply reply = Run(exchange.request());
  if (reply.lost) {
    co_await exchange.BeginStream(200, {});
    exchange.Abort();
    co_return;
  }
  http::HttpResponse response{.status = reply.status, .body = std::move(reply.body)};
  response.headers.emplace_back("content-type", "application/json");
  co_await exchange.Send(std::move(response));
}

const ScriptedStripe::Kept* ScriptedStripe::FindKept(const std::string& key) {
  constexpr int64_t kKeepSeconds = 86'400;
  std::erase_if(kept_, [&](const auto& one) { return now_ - one.second.at >= kKeepSeconds; });
  const auto found = kept_.find(key);
  return found == kept_.end() ? nullptr : &found->second;
}

ScriptedStripe::Reply ScriptedStripe::Execute(const std::string& method, const std::string& path,
                                              const Form& form,
                                              const std::function<bool(int)>& hits) {
  const Reply failed{500, R"({"error":{"type":"api_error"}})"};
  if (hits(faults_.error_before)) return failed;
  if (hits(faults_.refused)) {
    return {400, R"({"error":{"type":"invalid_request_error","code":"url_invalid"}})"};
  }
  const bool charge = method == "POST" && path == "/v1/payment_intents";
  if (charge && hits(faults_.charge_error)) return failed;
  if (hits(faults_.error_late)) {
    if (charge) late_.push_back({now_ + kLateSeconds, form});
    return failed;
  }
  const bool fails = hits(faults_.error_after);
  Reply reply = Do(method, path, form);
  return fails ? failed : reply;
}

ScriptedStripe::Reply ScriptedStripe::Run(const http::HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  paths_.push_back(request.path);
  if (request.header("authorization") != "Bearer sk_test_scripted") {
    return {401, R"({"error":{"type":"invalid_request_error"}})"};
  }
  int dice = static_cast<int>(random_() % 1000);
  const auto hits = [&dice](int share) {
    const bool hit = dice >= 0 && dice < share;
    dice -= share;
    return hit;
  };
  // The call does not reach the work: nothing is kept under its key.
  if (hits(faults_.lost_before)) return {.lost = true};
  if (hits(faults_.busy)) {
    return {429, R"({"error":{"type":"invalid_request_error","code":"rate_limit"}})"};
  }
  const std::string text = request.method == "GET" ? request.query : request.body;
  const std::string key(request.header("idempotency-key"));
  Reply reply;
  if (const Kept* kept = FindKept(key)) {
    if (kept->call != request.path + "?" + text) {
      return {400, R"({"error":{"type":"idempotency_error"}})"};
    }
    reply = kept->reply;
    // What may happen to this answer on its way does not depend on the first call.
    (void)hits(faults_.error_before + faults_.error_after + faults_.error_late + faults_.refused);
  } else {
    reply = Execute(request.method, request.path, DecodeForm(text), hits);
    if (!key.empty()) kept_[key] = {request.path + "?" + text, reply, now_};
  }
  if (hits(faults_.lost_after)) return {.lost = true};
  if (hits(faults_.garbage)) return {200, "<html>"};
  const auto replace = [&reply](const std::string& from, const std::string& to) {
    const size_t at = reply.body.find(from);
    if (at != std::string::npos) reply.body.replace(at, from.size(), to);
  };
  if (hits(faults_.another)) replace(R"("tollgate_payment":")", R"("tollgate_payment":"other)");
  if (hits(faults_.wrong_amount)) replace(R"("amount_received":)", R"("amount_received":9)");
  return reply;
}

}  // namespace tollgate::billing::payments
