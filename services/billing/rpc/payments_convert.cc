#include "services/billing/rpc/payments_convert.h"

#include "common/admin/values.h"
#include "services/billing/rpc/admin_calls.h"

namespace tollgate::billing {
namespace {

std::string Under(const std::string& workspace, const std::string& path) {
  return "workspaces/" + workspace + "/" + path;
}

void WriteTotals(const payments::Totals& totals, admin::v1::ReconciledTotals& out) {
  out.set_provider_usd(admin::FormatUsd(totals.provider_nano_usd));
  out.set_payments_usd(admin::FormatUsd(totals.payments_nano_usd));
  out.set_ledger_usd(admin::FormatUsd(totals.ledger_nano_usd));
  out.set_by_hand_usd(admin::FormatUsd(totals.by_hand_nano_usd));
}

void WriteHandMade(const payments::LedgerPort::Posting& posting, admin::v1::HandMadeEntry& out) {
  out.set_name(Under(posting.workspace,
                     (posting.refund() ? "adjustments/" : "creditGrants/") + posting.command_id));
  out.set_kind(posting.refund() ? "REFUND" : "TOPUP");
  out.set_amount_usd(admin::FormatUsd(posting.amount_nano_usd));
  out.set_actor(posting.actor);
  out.set_reason(posting.reason);
  SetTime(posting.at_us, *out.mutable_post_time());
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
  out.set_confirmed_by(payment.confirmed_by);
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
  WriteTotals(result.charged, *out.mutable_charged());
  WriteTotals(result.refunded, *out.mutable_refunded());
  out.set_adopted(result.adopted);
  out.set_reloads_wait(result.reloads_wait);
  for (const payments::LedgerPort::Posting& one : result.by_hand) {
    WriteHandMade(one, *out.add_by_hand());
  }
}

}  // namespace tollgate::billing
