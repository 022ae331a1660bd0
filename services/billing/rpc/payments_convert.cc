#include "services/billing/rpc/payments_convert.h"

#include "common/admin/values.h"
#include "services/billing/rpc/admin_calls.h"

namespace tollgate::billing {
namespace {

std::string Under(const std::string& workspace, const std::string& path) {
  return "workspaces/" + workspace + "/" + path;
}

}  // namespace

void ToResource(const payments::Payment& payment, admin::v1::Payment& out) {
  out.set_name(Under(payment.workspace, "payments/" + payment.id));
  out.set_amount_usd(admin::FormatUsd(payment.amount_nano_usd));
  // The proto and the database use the same numbers.
  out.set_state(static_cast<admin::v1::PaymentState>(payment.state));
  out.set_provider(payment.provider);
  out.set_reload(payment.reload);
  out.set_credited(payment.credited);
  if (payment.state == payments::PaymentState::kSubmitted) {
    out.set_checkout_url(payment.checkout_url);
  }
  out.set_provider_id(payment.reference.empty() ? payment.provider_id : payment.reference);
  out.set_reason(payment.reason);
  out.set_refunded_usd(admin::FormatUsd(payment.refunded_nano_usd));
  out.set_actor(payment.actor);
  SetTime(payment.created_us, *out.mutable_create_time());
  SetTime(payment.updated_us, *out.mutable_update_time());
  out.set_disputed(payment.disputed);
}

void ToResource(const payments::AutoReload& reload, admin::v1::AutoReload& out) {
  out.set_name(Under(reload.workspace, "autoReload"));
  out.set_enabled(reload.enabled);
  out.set_threshold_usd(admin::FormatUsd(reload.threshold_nano_usd));
  out.set_amount_usd(admin::FormatUsd(reload.amount_nano_usd));
  out.set_monthly_ceiling_usd(admin::FormatUsd(reload.ceiling_nano_usd));
  out.set_state(static_cast<admin::v1::AutoReloadState>(reload.state));
  out.set_pause_reason(reload.pause_reason);
  out.set_month_charged_usd(admin::FormatUsd(reload.month_charged_nano_usd));
  if (reload.next_us > 0) SetTime(reload.next_us, *out.mutable_next_attempt_time());
  if (!reload.reload_id.empty()) {
    out.set_last_payment(Under(reload.workspace, "payments/" + reload.reload_id));
  }
  if (reload.updated_us > 0) SetTime(reload.updated_us, *out.mutable_update_time());
}

void ToResource(const payments::PaymentMethod& method, admin::v1::PaymentMethod& out) {
  out.set_name(Under(method.workspace, "paymentMethods/" + method.id));
  out.set_brand(method.brand);
  out.set_last4(method.last4);
  out.set_expiry(method.expiry);
  SetTime(method.created_us, *out.mutable_create_time());
  out.set_refused_reason(method.refused);
}

void ToResource(const payments::Reconciliation& result, admin::v1::ReconcilePaymentsResponse& out) {
  out.set_provider_charges(result.charges);
  out.set_payments(result.payments);
  for (const payments::Difference& one : result.differences) {
    admin::v1::PaymentDifference& difference = *out.add_differences();
    difference.set_kind(std::string(Name(one.kind)));
    if (!one.workspace.empty() && !one.payment.empty()) {
      difference.set_payment(Under(one.workspace, "payments/" + one.payment));
    }
    difference.set_provider_id(one.provider_id);
    difference.set_provider_amount_usd(admin::FormatUsd(one.provider_nano_usd));
    difference.set_ledger_amount_usd(admin::FormatUsd(one.ledger_nano_usd));
  }
}

}  // namespace tollgate::billing
