#include "services/billing/payments/testing/scripted_stripe.h"

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

std::string At(const std::map<std::string, std::string>& form, const std::string& name) {
  const auto found = form.find(name);
  return found == form.end() ? "" : found->second;
}

std::string Metadata(const std::string& payment, const std::string& workspace) {
  json::Writer writer;
  if (!payment.empty()) writer.Text("tollgate_payment", payment);
  if (!workspace.empty()) writer.Text("tollgate_workspace", workspace);
  return writer.Done();
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
  options.timeout_ms = 5000;
  return options;
}

void ScriptedStripe::SetFaults(const Faults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

void ScriptedStripe::SetNow(int64_t seconds) {
  const std::lock_guard lock(mutex_);
  now_ = seconds;
}

void ScriptedStripe::DeclineCustomer(const std::string& customer, const std::string& code) {
  const std::lock_guard lock(mutex_);
  declines_[customer] = code;
}

void ScriptedStripe::SetRefundRefused(bool refused) {
  const std::lock_guard lock(mutex_);
  refund_refused_ = refused;
}

void ScriptedStripe::PayPage(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Session& session = sessions_.at(id);
  if (session.status != "open") return;
  Intent intent;
  intent.id = NewId("pi");
  intent.customer = session.customer;
  intent.payment = session.payment;
  intent.workspace = session.workspace;
  intent.amount_cents = session.amount_cents;
  intent.status = "succeeded";
  intent.created = now_;
  session.status = "complete";
  session.intent = intent.id;
  order_.push_back(intent.id);
  intents_[intent.id] = intent;
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
  disputes_[id] = {intent, status, intents_.at(intent).amount_cents};
  AddEvent("charge.dispute.created", json::Writer().Text("id", id).Done());
  return id;
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

std::vector<ScriptedStripe::Intent> ScriptedStripe::intents() const {
  const std::lock_guard lock(mutex_);
  std::vector<Intent> all;
  for (const auto& id : order_) all.push_back(intents_.at(id));
  return all;
}

int64_t ScriptedStripe::refunded_cents(const std::string& intent) const {
  const std::lock_guard lock(mutex_);
  return intents_.at(intent).refunded_cents;
}

int ScriptedStripe::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
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

std::string ScriptedStripe::Render(const Intent& intent) const {
  json::Writer writer;
  writer.Text("id", intent.id).Text("object", "payment_intent").Text("status", intent.status);
  writer.Number("amount", intent.amount_cents).Text("currency", "usd");
  writer.Number("amount_received", intent.status == "succeeded" ? intent.amount_cents : 0);
  writer.Number("created", intent.created).Text("customer", intent.customer);
  writer.Raw("metadata", Metadata(intent.payment, intent.workspace));
  if (!intent.decline_code.empty()) {
    writer.Raw("last_payment_error", json::Writer()
                                         .Text("code", "card_declined")
                                         .Text("decline_code", intent.decline_code)
                                         .Done());
  }
  if (intent.status == "succeeded") {
    writer.Raw("latest_charge", json::Writer()
                                    .Text("id", "ch" + intent.id)
                                    .Number("amount_refunded", intent.refunded_cents)
                                    .Flag("disputed", intent.disputed)
                                    .Done());
  }
  return writer.Done();
}

std::string ScriptedStripe::Render(const Session& session) const {
  json::Writer writer;
  writer.Text("id", session.id).Text("object", "checkout.session").Text("mode", session.mode);
  writer.Text("status", session.status).Text("customer", session.customer);
  if (session.status == "open") writer.Text("url", "https://pay.example.test/" + session.id);
  writer.Raw("metadata", Metadata(session.payment, session.workspace));
  if (!session.intent.empty()) writer.Raw("payment_intent", Render(intents_.at(session.intent)));
  if (!session.card.empty()) {
    const std::string card = json::Writer()
                                 .Text("brand", "visa")
                                 .Text("last4", "4242")
                                 .Number("exp_year", 2029)
                                 .Number("exp_month", 4)
                                 .Done();
    const std::string method = json::Writer()
                                   .Text("id", session.card)
                                   .Text("type", "card")
                                   .Text("customer", session.customer)
                                   .Raw("card", card)
                                   .Done();
    writer.Raw("setup_intent", json::Writer()
                                   .Text("id", "seti" + session.id)
                                   .Text("status", "succeeded")
                                   .Raw("payment_method", method)
                                   .Done());
  }
  return writer.Done();
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

ScriptedStripe::Reply ScriptedStripe::Run(const http::HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  if (request.header("authorization") != "Bearer sk_test_scripted") {
    return {401, R"({"error":{"type":"invalid_request_error"}})"};
  }
  int dice = static_cast<int>(random_() % 1000);
  const auto hits = [&dice](int share) {
    const bool hit = dice >= 0 && dice < share;
    dice -= share;
    return hit;
  };
  if (hits(faults_.lost_before)) return {.lost = true};
  if (hits(faults_.error_before)) return {500, R"({"error":{"type":"api_error"}})"};
  if (hits(faults_.busy)) {
    return {429, R"({"error":{"type":"invalid_request_error","code":"rate_limit"}})"};
  }
  if (hits(faults_.refused)) {
    return {400, R"({"error":{"type":"invalid_request_error","code":"url_invalid"}})"};
  }
  const bool lost = hits(faults_.lost_after);
  const bool error = hits(faults_.error_after);
  const bool garbage = hits(faults_.garbage);
  const bool another = hits(faults_.another);
  const bool wrong = hits(faults_.wrong_amount);
  const std::string text = request.method == "GET" ? request.query : request.body;
  const Form form = DecodeForm(text);
  const std::string key(request.header("idempotency-key"));
  Reply reply;
  if (const auto known = done_.find(key); !key.empty() && known != done_.end()) {
    if (known->second.first != request.path + "?" + text) {
      return {400, R"({"error":{"type":"idempotency_error"}})"};
    }
    reply = known->second.second;
  } else {
    reply = Do(request.method, request.path, form);
    if (!key.empty()) done_[key] = {request.path + "?" + text, reply};
  }
  if (lost) return {.lost = true};
  if (error) return {500, R"({"error":{"type":"api_error"}})"};
  if (garbage) return {200, "<html>"};
  const auto replace = [&reply](const std::string& from, const std::string& to) {
    const size_t at = reply.body.find(from);
    if (at != std::string::npos) reply.body.replace(at, from.size(), to);
  };
  if (another) replace(R"("tollgate_payment":")", R"("tollgate_payment":"other)");
  if (wrong) replace(R"("amount_received":)", R"("amount_received":9)");
  return reply;
}

ScriptedStripe::Reply ScriptedStripe::Missing() {
  return {404, R"({"error":{"type":"invalid_request_error","code":"resource_missing"}})"};
}

ScriptedStripe::Reply ScriptedStripe::Do(const std::string& method, const std::string& path,
                                         const Form& form) {
  const bool post = method == "POST";
  const auto rest = [&path](const std::string& prefix) -> std::optional<std::string> {
    if (!path.starts_with(prefix)) return std::nullopt;
    return path.substr(prefix.size());
  };
  if (path == "/v1/customers") return {200, json::Writer().Text("id", NewId("cus")).Done()};
  if (path == "/v1/payment_intents") return post ? MakeIntent(form) : ListIntents(form);
  if (path == "/v1/checkout/sessions") return MakeSession(form);
  if (path == "/v1/refunds") {
    if (post) return MakeRefund(form);
    const std::string list = json::WriteArray(refunds_, [&](const RefundRow& refund) {
      return json::Writer()
          .Text("id", refund.intent == At(form, "payment_intent") ? refund.id : "other")
          .Text("status", "succeeded")
          .Raw("metadata", json::Writer().Text("tollgate_refund", refund.key).Done())
          .Done();
    });
    return {200, json::Writer().Raw("data", list).Done()};
  }
  if (const auto id = rest("/v1/disputes/")) {
    const auto found = disputes_.find(*id);
    if (found == disputes_.end()) return Missing();
    return {200, json::Writer()
                     .Text("id", *id)
                     .Text("payment_intent", found->second.intent)
                     .Text("status", found->second.status)
                     .Number("amount", found->second.cents)
                     .Done()};
  }
  if (path.starts_with("/v1/payment_methods/")) return {200, "{}"};
  if (auto id = rest("/v1/checkout/sessions/")) {
    const bool expire = id->ends_with("/expire");
    if (expire) id->resize(id->size() - 7);
    const auto found = sessions_.find(*id);
    if (found == sessions_.end()) return Missing();
    if (expire) {
      if (found->second.status != "open") {
        return {400, R"({"error":{"type":"invalid_request_error"}})"};
      }
      found->second.status = "expired";
    }
    return {200, Render(found->second)};
  }
  if (auto id = rest("/v1/payment_intents/")) {
    const bool cancel = id->ends_with("/cancel");
    if (cancel) id->resize(id->size() - 7);
    const auto found = intents_.find(*id);
    if (found == intents_.end()) return Missing();
    if (cancel && found->second.status != "succeeded") found->second.status = "canceled";
    return {200, Render(found->second)};
  }
  return Missing();
}

ScriptedStripe::Reply ScriptedStripe::MakeIntent(const Form& form) {
  Intent intent;
  intent.id = NewId("pi");
  intent.customer = At(form, "customer");
  intent.payment = At(form, "metadata[tollgate_payment]");
  intent.workspace = At(form, "metadata[tollgate_workspace]");
  intent.amount_cents = std::stoll(At(form, "amount"));
  intent.created = now_;
  const std::string decline = declines_[intent.customer];
  intent.status = decline.empty() ? "succeeded" : "requires_payment_method";
  intent.decline_code = decline;
  order_.push_back(intent.id);
  intents_[intent.id] = intent;
  AddEvent(decline.empty() ? "payment_intent.succeeded" : "payment_intent.payment_failed",
           Render(intent));
  if (decline.empty()) return {200, Render(intent)};
  const std::string error = json::Writer()
                                .Text("type", "card_error")
                                .Text("code", "card_declined")
                                .Text("decline_code", decline)
                                .Raw("payment_intent", Render(intent))
                                .Done();
  return {402, json::Writer().Raw("error", error).Done()};
}

ScriptedStripe::Reply ScriptedStripe::ListIntents(const Form& form) {
  const int64_t from = At(form, "created[gte]").empty() ? 0 : std::stoll(At(form, "created[gte]"));
  const int64_t to =
      At(form, "created[lt]").empty() ? INT64_MAX : std::stoll(At(form, "created[lt]"));
  const std::string customer = At(form, "customer");
  const size_t limit = static_cast<size_t>(std::stoll(At(form, "limit")));
  bool skip = !At(form, "starting_after").empty();
  const bool stale = static_cast<int>(random_() % 1000) < faults_.not_found_yet;
  std::vector<std::string> found;
  bool more = false;
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    const Intent& intent = intents_.at(*id);
    if (skip) {
      skip = intent.id != At(form, "starting_after");
      continue;
    }
    if (!customer.empty() && intent.customer != customer) continue;
    if (intent.created < from || intent.created >= to || stale) continue;
    if (found.size() == limit) {
      more = true;
      break;
    }
    found.push_back(Render(intent));
  }
  return {200, json::Writer()
                   .Raw("data", json::WriteArray(found, [](const std::string& one) { return one; }))
                   .Flag("has_more", more)
                   .Done()};
}

ScriptedStripe::Reply ScriptedStripe::MakeSession(const Form& form) {
  Session session;
  session.id = NewId("cs");
  session.mode = At(form, "mode");
  session.customer = At(form, "customer");
  session.payment = At(form, "metadata[tollgate_payment]");
  session.workspace = At(form, "metadata[tollgate_workspace]");
  const std::string cents = At(form, "line_items[0][price_data][unit_amount]");
  if (!cents.empty()) session.amount_cents = std::stoll(cents);
  sessions_[session.id] = session;
  return {200, Render(session)};
}

ScriptedStripe::Reply ScriptedStripe::MakeRefund(const Form& form) {
  const auto found = intents_.find(At(form, "payment_intent"));
  if (found == intents_.end()) return Missing();
  const int64_t cents = std::stoll(At(form, "amount"));
  if (refund_refused_ || cents > found->second.amount_cents - found->second.refunded_cents) {
    return {400, R"({"error":{"type":"invalid_request_error","code":"charge_already_refunded"}})"};
  }
  found->second.refunded_cents += cents;
  refunds_.push_back({NewId("re"), found->first, At(form, "metadata[tollgate_refund]"), cents});
  return {200, json::Writer().Text("id", refunds_.back().id).Text("status", "succeeded").Done()};
}

}  // namespace tollgate::billing::payments
