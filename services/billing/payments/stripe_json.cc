#include "services/billing/payments/stripe_json.h"

#include <cstdio>

namespace tollgate::billing::payments {
namespace {

int64_t IntOf(json::Value value) { return value.is_number() ? value.Integer().value_or(0) : 0; }

std::string ErrorCode(json::Value error) {
  std::string code = TextOf(error.Find("decline_code"));
  if (code.empty()) code = TextOf(error.Find("code"));
  if (code.empty()) code = "declined";
  // The issuer's advice: card networks fine charges after it.
  if (TextOf(error.Find("advice_code")) == "do_not_try_again") code += kDoNotTryAgain;
  return code;
}

}  // namespace

std::string TextOf(json::Value value) { return value.is_string() ? value.string() : std::string(); }

std::string IdOf(json::Value value) {
  return value.is_object() ? TextOf(value.Find("id")) : TextOf(value);
}

ChargeView ReadIntent(json::Value intent, bool off_session) {
  using State = ChargeView::State;
  ChargeView view;
  view.provider_id = TextOf(intent.Find("id"));
  view.currency = TextOf(intent.Find("currency"));
  view.received_cents = IntOf(intent.Find("amount_received"));
  view.created_us = IntOf(intent.Find("created")) * 1'000'000;
  const json::Value metadata = intent.Find("metadata");
  view.payment_id = TextOf(metadata.Find(kPaymentKey));
  view.workspace = TextOf(metadata.Find(kWorkspaceKey));
  view.reload = TextOf(metadata.Find(kReloadKey)) == "1";
  view.customer = IdOf(intent.Find("customer"));
  view.method = IdOf(intent.Find("payment_method"));
  const json::Value charge = intent.Find("latest_charge");
  if (charge.is_object()) {
    view.refunded_cents = IntOf(charge.Find("amount_refunded"));
  }
  const std::string status = TextOf(intent.Find("status"));
  const json::Value error = intent.Find("last_payment_error");
  view.state = State::kOpen;
  if (status == "succeeded") {
    view.state = State::kSucceeded;
  } else if (status == "canceled") {
    view.state = State::kCancelled;
    view.reason = TextOf(intent.Find("cancellation_reason"));
  } else if (off_session && status == "requires_action") {
    view.state = State::kDeclined;
    view.reason = "authentication_required";
  } else if (off_session && status == "requires_payment_method" && error.is_object()) {
    view.state = State::kDeclined;
    view.reason = ErrorCode(error);
  }
  return view;
}

ChargeView ReadSession(json::Value session) {
  using State = ChargeView::State;
  const json::Value intent = session.Find("payment_intent");
  ChargeView view;
  if (intent.is_object()) view = ReadIntent(intent, false);
  if (view.provider_id.empty()) view.provider_id = IdOf(intent);
  const json::Value metadata = session.Find("metadata");
  if (view.payment_id.empty()) view.payment_id = TextOf(metadata.Find(kPaymentKey));
  if (view.workspace.empty()) view.workspace = TextOf(metadata.Find(kWorkspaceKey));
  if (view.state == State::kNone) view.state = State::kOpen;
  if (view.state == State::kOpen && TextOf(session.Find("status")) == "expired") {
    view.state = State::kCancelled;
    view.reason = "expired";
  }
  return view;
}

MethodView ReadMethod(json::Value method) {
  MethodView view;
  view.id = TextOf(method.Find("id"));
  view.customer = IdOf(method.Find("customer"));
  const json::Value card = method.Find("card");
  view.brand = card.is_object() ? TextOf(card.Find("brand")) : TextOf(method.Find("type"));
  view.last4 = TextOf(card.Find("last4"));
  if (const int64_t year = IntOf(card.Find("exp_year")); year > 0) {
    char text[16];
    std::snprintf(text, sizeof text, "%04d-%02d", static_cast<int>(year % 10000),
                  static_cast<int>(IntOf(card.Find("exp_month")) % 100));
    view.expiry = text;
  }
  return view;
}

DisputeView ReadDispute(json::Value dispute) {
  DisputeView view;
  view.id = TextOf(dispute.Find("id"));
  const json::Value intent = dispute.Find("payment_intent");
  view.charge = IdOf(intent);
  if (intent.is_object()) {
    view.payment_id = TextOf(intent.Find("metadata").Find(kPaymentKey));
    view.workspace = TextOf(intent.Find("metadata").Find(kWorkspaceKey));
  }
  view.amount_cents = IntOf(dispute.Find("amount"));
  const std::string status = TextOf(dispute.Find("status"));
  if (status == "won" || status == "warning_closed") {
    view.state = DisputeView::State::kWon;
  } else if (status.starts_with("warning_") || status == "prevented") {
    view.state = DisputeView::State::kInquiry;
  } else if (status == "lost") {
    view.state = DisputeView::State::kLost;
  }
  if (status.ends_with("needs_response")) {
    view.due_us = IntOf(dispute.Find("evidence_details").Find("due_by")) * 1'000'000;
  }
  return view;
}

DisputeView ReadFraudWarning(json::Value warning) {
  DisputeView view = ReadDispute(warning);
  view.state = DisputeView::State::kInquiry;
  view.amount_cents = 0;
  view.fraud_warning = true;
  return view;
}

RefundView ReadRefund(json::Value refund) {
  const std::string status = TextOf(refund.Find("status"));
  const json::Value metadata = refund.Find("metadata");
  return {TextOf(refund.Find("id")),
          status == "failed" || status == "canceled",
          TextOf(metadata.Find(kWorkspaceKey)),
          TextOf(metadata.Find(kRefundKey)),
          IdOf(refund.Find("payment_intent")),
          IntOf(refund.Find("amount"))};
}

}  // namespace tollgate::billing::payments
