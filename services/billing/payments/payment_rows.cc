#include "services/billing/payments/payment_rows.h"

#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"

namespace tollgate::billing::payments {

using sql::Param;
using sql::Row;

Payment ReadPayment(const Row& row) {
  Payment payment;
  int column = 0;
  payment.workspace = row.Text(column++);
  payment.id = row.Text(column++);
  payment.provider = row.Text(column++);
  payment.state = static_cast<PaymentState>(row.Int(column++));
  payment.reload = row.Int(column++) != 0;
  payment.amount_nano_usd = row.Int(column++);
  payment.customer = row.Text(column++);
  payment.method = row.Text(column++);
  payment.provider_id = row.Text(column++);
  payment.checkout_id = row.Text(column++);
  payment.checkout_url = row.Text(column++);
  payment.reason = row.Text(column++);
  payment.reference = row.Text(column++);
  payment.actor = row.Text(column++);
  payment.credited = row.Int(column++) != 0;
  payment.refunded_nano_usd = row.Int(column++);
  payment.disputed = row.Int(column++) != 0;
  payment.created_us = row.Int(column++);
  payment.updated_us = row.Int(column++);
  payment.sent_us = row.Int(column++);
  payment.check_us = row.Int(column++);
  payment.attempts = row.Int(column++);
  payment.last_sent_us = row.Int(column++);
  payment.cancel_us = row.Int(column++);
  payment.confirmed_by = row.Text(column++);
  payment.keys = row.Int(column++);
  payment.failed_us = row.Int(column++);
  payment.watch_us = row.Int(column++);
  return payment;
}

std::vector<Param> Cells(const Payment& payment) {
  return {LedgerShard(payment.workspace),
          payment.workspace,
          payment.id,
          payment.provider,
          static_cast<int>(payment.state),
          payment.reload ? 1 : 0,
          payment.amount_nano_usd,
          payment.customer,
          payment.method,
          payment.provider_id,
          payment.checkout_id,
          payment.checkout_url,
          payment.reason,
          payment.reference,
          payment.actor,
          payment.credited ? 1 : 0,
          payment.refunded_nano_usd,
          payment.disputed ? 1 : 0,
          payment.created_us,
          payment.updated_us,
          payment.sent_us,
          payment.check_us,
          payment.attempts,
          payment.last_sent_us,
          payment.cancel_us,
          payment.confirmed_by,
          payment.keys,
          payment.failed_us,
          payment.watch_us};
}

AutoReload ReadReload(const Row& row) {
  AutoReload reload;
  int column = 0;
  reload.workspace = row.Text(column++);
  reload.enabled = row.Int(column++) != 0;
  reload.threshold_nano_usd = row.Int(column++);
  reload.amount_nano_usd = row.Int(column++);
  reload.ceiling_nano_usd = row.Int(column++);
  reload.state = static_cast<ReloadState>(row.Int(column++));
  reload.pause_reason = row.Text(column++);
  reload.reload_id = row.Text(column++);
  reload.next_us = row.Int(column++);
  reload.declines = row.Int(column++);
  reload.month = static_cast<int32_t>(row.Int(column++));
  reload.month_charged_nano_usd = row.Int(column++);
  reload.version = row.Int(column++);
  reload.actor = row.Text(column++);
  reload.updated_us = row.Int(column++);
  reload.confirmed_us = row.Int(column++);
  reload.confirm_page = row.Text(column++);
  return reload;
}

std::vector<Param> Cells(const AutoReload& reload) {
  return {LedgerShard(reload.workspace),
          reload.workspace,
          reload.enabled ? 1 : 0,
          reload.threshold_nano_usd,
          reload.amount_nano_usd,
          reload.ceiling_nano_usd,
          static_cast<int>(reload.state),
          reload.pause_reason,
          reload.reload_id,
          reload.next_us,
          reload.declines,
          reload.month,
          reload.month_charged_nano_usd,
          reload.version,
          reload.actor,
          reload.updated_us,
          reload.confirmed_us,
          reload.confirm_page};
}

Refund ReadRefundRow(const Row& row) {
  Refund refund;
  int column = 0;
  refund.workspace = row.Text(column++);
  refund.id = row.Text(column++);
  refund.payment = row.Text(column++);
  refund.state = static_cast<RefundState>(row.Int(column++));
  refund.amount_nano_usd = row.Int(column++);
  refund.provider_id = row.Text(column++);
  refund.reason = row.Text(column++);
  refund.actor = row.Text(column++);
  refund.created_us = row.Int(column++);
  refund.updated_us = row.Int(column++);
  refund.check_us = row.Int(column++);
  refund.attempts = row.Int(column++);
  refund.extra_charge = row.Text(column++);
  return refund;
}

std::vector<Param> Cells(const Refund& refund) {
  return {LedgerShard(refund.workspace),
          refund.workspace,
          refund.id,
          refund.payment,
          static_cast<int>(refund.state),
          refund.amount_nano_usd,
          refund.provider_id,
          refund.reason,
          refund.actor,
          refund.created_us,
          refund.updated_us,
          refund.check_us,
          refund.attempts,
          refund.extra_charge};
}

PaymentMethod ReadMethodRow(const Row& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Text(4),
          row.Text(5), row.Int(6),  row.Int(7),  row.Int(8),  row.Text(9)};
}

std::vector<Param> Cells(const PaymentMethod& method) {
  return {LedgerShard(method.workspace),
          method.workspace,
          method.id,
          method.provider,
          method.brand,
          method.last4,
          method.expiry,
          method.created_us,
          method.deleted_us,
          method.chosen_us,
          method.refused};
}

Dispute ReadDisputeRow(const Row& row) {
  Dispute dispute;
  dispute.workspace = row.Text(0);
  dispute.id = row.Text(1);
  dispute.payment = row.Text(2);
  dispute.state = static_cast<DisputeView::State>(row.Int(3));
  dispute.amount_nano_usd = row.Int(4);
  dispute.taken = row.Int(5) != 0;
  dispute.fraud_warning = row.Int(6) != 0;
  dispute.due_us = row.Int(7);
  dispute.opened_us = row.Int(8);
  dispute.closed_us = row.Int(9);
  return dispute;
}

std::vector<Param> Cells(const Dispute& dispute) {
  return {LedgerShard(dispute.workspace),
          dispute.workspace,
          dispute.id,
          dispute.payment,
          static_cast<int>(dispute.state),
          dispute.amount_nano_usd,
          dispute.taken ? 1 : 0,
          dispute.fraud_warning ? 1 : 0,
          dispute.due_us,
          dispute.opened_us,
          dispute.closed_us};
}

ProviderEvent ReadEventRow(const Row& row) {
  ProviderEvent event;
  event.workspace = row.Text(0);
  event.id = row.Text(1);
  event.type = row.Text(2);
  event.object = row.Text(3);
  event.payment = row.Text(4);
  event.received_us = row.Int(5);
  event.check_us = row.Int(6);
  event.attempts = row.Int(7);
  return event;
}

std::vector<Param> Cells(const ProviderEvent& event) {
  return {LedgerShard(event.workspace),
          event.workspace,
          event.id,
          event.type,
          event.object,
          event.payment,
          event.received_us,
          event.check_us,
          event.attempts};
}

std::string EventHash(const std::string& before, const PaymentEvent& event) {
  std::string text = before;
  // Each field is prefixed with its length, so that no two events have the same text.
  const auto add = [&text](std::string_view field) {
    text += std::to_string(field.size()) + ":";
    text += field;
  };
  add(event.workspace);
  add(std::to_string(event.sequence));
  add(std::to_string(event.at_us));
  add(event.subject);
  add(event.from);
  add(event.to);
  add(std::to_string(event.amount_nano_usd));
  add(event.actor);
  add(event.reason);
  return Sha256(text);
}

}  // namespace tollgate::billing::payments
