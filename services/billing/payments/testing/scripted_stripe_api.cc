// Objects of the scripted provider, as Stripe's API shows and changes them.
#include "common/json/writer.h"
#include "services/billing/payments/testing/scripted_stripe.h"

namespace tollgate::billing::payments {
namespace {

std::string At(const std::map<std::string, std::string>& form, const std::string& name) {
  const auto found = form.find(name);
  return found == form.end() ? "" : found->second;
}

std::string Metadata(const std::string& payment, const std::string& workspace,
                     bool reload = false) {
  json::Writer writer;
  if (!payment.empty()) writer.Text("tollgate_payment", payment);
  if (!workspace.empty()) writer.Text("tollgate_workspace", workspace);
  if (reload) writer.Text("tollgate_reload", "1");
  return writer.Done();
}

}  // namespace

std::string ScriptedStripe::Render(const Intent& intent) const {
  json::Writer writer;
  writer.Text("id", intent.id).Text("object", "payment_intent").Text("status", intent.status);
  writer.Number("amount", intent.amount_cents).Text("currency", "usd");
  writer.Number("amount_received", intent.status == "succeeded" ? intent.amount_cents : 0);
  writer.Number("created", intent.created).Text("customer", intent.customer);
  if (!intent.method.empty()) writer.Text("payment_method", intent.method);
  writer.Raw("metadata", Metadata(intent.payment, intent.workspace, intent.reload));
  if (!intent.decline_code.empty()) {
    json::Writer error;
    error.Text("code", "card_declined").Text("decline_code", intent.decline_code);
    if (!intent.advice_code.empty()) error.Text("advice_code", intent.advice_code);
    writer.Raw("last_payment_error", error.Done());
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
    std::vector<RefundRow> made;
    for (const RefundRow& refund : refunds_) {
      if (refund.intent == At(form, "payment_intent")) made.push_back(refund);
    }
    const std::string list =
        json::WriteArray(made, [](const RefundRow& refund) { return Render(refund); });
    return {200, json::Writer().Raw("data", list).Done()};
  }
  if (const auto id = rest("/v1/refunds/")) return FindRefund(*id);
  if (path == "/v1/disputes") return ListDisputes("du", form);
  if (path == "/v1/radar/early_fraud_warnings") return ListDisputes("issfr", form);
  if (const auto id = rest("/v1/disputes/")) return FindDispute(*id, form);
  if (const auto id = rest("/v1/radar/early_fraud_warnings/")) return FindDispute(*id, form);
  // The page still shows a card that was detached later.
  if (path.starts_with("/v1/payment_methods/")) return {200, "{}"};
  if (const auto id = rest("/v1/checkout/sessions/")) return DoSession(*id);
  if (const auto id = rest("/v1/payment_intents/")) return DoIntent(*id);
  return Missing();
}

ScriptedStripe::Reply ScriptedStripe::DoSession(std::string id) {
  const bool expire = id.ends_with("/expire");
  if (expire) id.resize(id.size() - 7);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Missing();
  if (expire) {
    if (found->second.status != "open") {
      return {400, R"({"error":{"type":"invalid_request_error"}})"};
    }
    found->second.status = "expired";
  }
  return {200, Render(found->second)};
}

ScriptedStripe::Reply ScriptedStripe::DoIntent(std::string id) {
  const bool cancel = id.ends_with("/cancel");
  if (cancel) id.resize(id.size() - 7);
  const auto found = intents_.find(id);
  if (found == intents_.end()) return Missing();
  // The payment intent of a page can only be ended through its page.
  if (cancel && (found->second.status == "succeeded" || !found->second.session.empty())) {
    return {400, R"({"error":{"type":"invalid_request_error",)"
                 R"("code":"payment_intent_unexpected_state"}})"};
  }
  if (cancel) found->second.status = "canceled";
  return {200, Render(found->second)};
}

ScriptedStripe::Reply ScriptedStripe::FindRefund(const std::string& id) const {
  for (const RefundRow& refund : refunds_) {
    if (refund.id == id) return {200, Render(refund)};
  }
  return Missing();
}

ScriptedStripe::Reply ScriptedStripe::FindDispute(const std::string& id, const Form& form) const {
  if (!disputes_.contains(id)) return Missing();
  return {200, RenderDispute(id, At(form, "expand[]") == "payment_intent")};
}

std::string ScriptedStripe::RenderDispute(const std::string& id, bool expanded) const {
  const DisputeRow& dispute = disputes_.at(id);
  json::Writer writer;
  writer.Text("id", id).Text("status", dispute.status).Number("amount", dispute.cents);
  writer.Raw("evidence_details", json::Writer().Number("due_by", dispute.due).Done());
  if (expanded) {
    writer.Raw("payment_intent", Render(intents_.at(dispute.intent)));
  } else {
    writer.Text("payment_intent", dispute.intent);
  }
  return writer.Done();
}

ScriptedStripe::Reply ScriptedStripe::ListDisputes(const std::string& prefix,
                                                   const Form& form) const {
  std::vector<std::string> found;
  for (const auto& [id, dispute] : disputes_) {
    if (!id.starts_with(prefix) || dispute.created < std::stoll(At(form, "created[gte]")) ||
        dispute.created >= std::stoll(At(form, "created[lt]"))) {
      continue;
    }
    found.push_back(RenderDispute(id, At(form, "expand[]") == "data.payment_intent"));
  }
  return {200, json::Writer()
                   .Raw("data", json::WriteArray(found, [](const std::string& one) { return one; }))
                   .Flag("has_more", false)
                   .Done()};
}

std::string ScriptedStripe::Render(const RefundRow& refund) {
  return json::Writer()
      .Text("id", refund.id)
      .Text("object", "refund")
      .Text("status", refund.status)
      .Text("payment_intent", refund.intent)
      .Number("amount", refund.cents)
      .Raw("metadata", json::Writer()
                           .Text("tollgate_refund", refund.key)
                           .Text("tollgate_workspace", refund.workspace)
                           .Done())
      .Done();
}

ScriptedStripe::Reply ScriptedStripe::MakeIntent(const Form& form) {
  Intent intent;
  intent.id = NewId("pi");
  intent.customer = At(form, "customer");
  intent.payment = At(form, "metadata[tollgate_payment]");
  intent.workspace = At(form, "metadata[tollgate_workspace]");
  intent.reload = At(form, "metadata[tollgate_reload]") == "1";
  intent.amount_cents = std::stoll(At(form, "amount"));
  intent.created = now_;
  intent.method = At(form, "payment_method");
  const DeclineRow& row =
      declines_[declines_[intent.method].code.empty() ? intent.customer : intent.method];
  const std::string& decline = row.code;
  intent.advice_code = row.advice;
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
    if (intent.created < from) break;
    if (intent.created >= to || stale) continue;
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
  if (refund_refused_) {
    return {400, R"({"error":{"type":"invalid_request_error","code":"charge_disputed"}})"};
  }
  if (cents > found->second.amount_cents - found->second.refunded_cents) {
    return {400, R"({"error":{"type":"invalid_request_error","code":"charge_already_refunded"}})"};
  }
  found->second.refunded_cents += cents;
  RefundRow refund;
  refund.id = NewId("re");
  refund.intent = found->first;
  refund.key = At(form, "metadata[tollgate_refund]");
  refund.workspace = At(form, "metadata[tollgate_workspace]");
  refund.cents = cents;
  refunds_.push_back(refund);
  return {200, Render(refund)};
}

}  // namespace tollgate::billing::payments
