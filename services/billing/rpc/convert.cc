#include "services/billing/rpc/convert.h"

namespace tollgate::billing {
namespace {

// A wrong length gives the empty id, which the ledger refuses as invalid.
Id ToId(const std::string& bytes) { return Id::FromBytes(bytes).value_or(Id()); }

Usage ToUsage(const common::v1::Usage& usage) {
  return {usage.prompt_tokens(), usage.cached_tokens(), usage.cache_write_tokens(),
          usage.completion_tokens(), usage.reasoning_tokens()};
}

void FromUsage(const Usage& usage, common::v1::Usage& into) {
  into.set_prompt_tokens(usage.prompt);
  into.set_cached_tokens(usage.cached);
  into.set_cache_write_tokens(usage.cache_write);
  into.set_completion_tokens(usage.completion);
  into.set_reasoning_tokens(usage.reasoning);
}

Outcome ToOutcome(v1::Outcome outcome) {
  // Unknown numbers become kNone, which the ledger refuses.
  return v1::Outcome_IsValid(outcome) ? static_cast<Outcome>(outcome) : Outcome::kNone;
}

void FromBucket(const UsageBucket& bucket, v1::UsageBucket& into) {
  into.set_model(bucket.model);
  into.set_day(bucket.day);
  into.set_requests(bucket.requests);
  FromUsage(bucket.usage, *into.mutable_usage());
  into.set_charged_nano_usd(bucket.charged);
}

}  // namespace

Op ToOp(const v1::AuthorizeItem& item) {
  Op op;
  op.kind = OpKind::kAuthorize;
  op.id = ToId(item.request_id());
  op.workspace = item.workspace_id();
  op.key_id = item.key_id();
  op.model = item.model();
  op.rates = {item.price().input_pico_usd(), item.price().output_pico_usd()};
  op.price_version = item.price().version();
  op.prompt_bound = item.prompt_tokens_bound();
  op.output_bound = item.output_tokens_bound();
  return op;
}

Op ToOp(const v1::VoidItem& item) {
  Op op;
  op.kind = OpKind::kVoid;
  op.id = ToId(item.request_id());
  op.workspace = item.workspace_id();
  op.reason = item.reason();
  return op;
}

Op ToOp(const v1::MeterOp& meter) {
  Op op;
  op.id = ToId(meter.request_id());
  op.workspace = meter.workspace_id();
  op.sequence = meter.sequence();
  switch (meter.op_case()) {
    case v1::MeterOp::kExtend:
      op.kind = OpKind::kExtend;
      op.authorized_total = meter.extend().authorized_total_nano_usd();
      op.usage = ToUsage(meter.extend().usage());
      break;
    case v1::MeterOp::kHeartbeat:
      op.kind = OpKind::kHeartbeat;
      op.usage = ToUsage(meter.heartbeat().usage());
      break;
    case v1::MeterOp::kSettle:
      op.kind = OpKind::kSettle;
      op.usage = ToUsage(meter.settle().usage());
      op.outcome = ToOutcome(meter.settle().outcome());
      op.cut_by_credit = meter.settle().cut_by_credit();
      op.estimated = meter.settle().estimated();
      op.engine = meter.settle().engine_id();
      break;
    case v1::MeterOp::OP_NOT_SET:
      op.kind = OpKind::kHeartbeat;
      op.id = Id();  // refused as invalid
      break;
  }
  return op;
}

Op ToOp(const v1::AddCreditRequest& request) {
  Op op;
  op.kind = OpKind::kAddCredit;
  op.workspace = request.workspace_id();
  op.command = request.request_id();
  op.amount = request.amount_nano_usd();
  op.granted = request.granted();
  op.actor = request.actor();
  op.reason = request.reason();
  return op;
}

Op ToOp(const v1::SetCapRequest& request) {
  Op op;
  op.kind = OpKind::kSetCap;
  op.workspace = request.workspace_id();
  op.command = request.request_id();
  if (request.has_cap_nano_usd()) op.cap = request.cap_nano_usd();
  op.actor = request.actor();
  return op;
}

void FromReply(const Reply& reply, v1::AuthorizeResult& into) {
  into.set_granted(reply.ok);
  into.set_denied_by(static_cast<v1::DenyReason>(reply.denied_by));
  into.set_retry_after_ms(reply.retry_after_ms);
  into.set_authorized_nano_usd(reply.authorized);
  into.set_slice_nano_usd(reply.slice);
}

void FromReply(const Reply& reply, v1::MeterResult& into) {
  into.set_ok(reply.ok);
  into.set_denied_by(static_cast<v1::DenyReason>(reply.denied_by));
  into.set_authorized_nano_usd(reply.authorized);
  into.set_charged_nano_usd(reply.charged);
}

void FromBalance(const Balance& balance, v1::Balance& into) {
  into.set_workspace_id(balance.workspace);
  into.set_paid(balance.paid);
  into.set_granted(balance.granted);
  into.set_held(balance.held);
  into.set_available(balance.paid + balance.granted - balance.held);
  if (balance.cap) into.set_cap(*balance.cap);
  into.set_month(balance.month);
  into.set_month_spent(balance.month_spent);
  into.set_month_held(balance.month_held);
  into.set_open_holds(balance.open_holds);
}

void FromEntry(const Entry& entry, v1::Entry& into) {
  into.set_workspace_id(entry.workspace);
  into.set_sequence(entry.sequence);
  into.set_kind(std::string(EntryKindName(entry.kind)));
  into.set_request_id(entry.request);
  into.set_debit_account(std::string(AccountName(entry.debit)));
  into.set_credit_account(std::string(AccountName(entry.credit)));
  into.set_amount_nano_usd(entry.amount);
  into.set_month(entry.month);
  into.set_at_us(entry.at_us);
  into.set_memo(entry.memo);
}

void FromUsage(const UsageReport& report, v1::GetUsageResponse& into) {
  FromBucket(report.total, *into.mutable_total());
  for (const UsageBucket& bucket : report.buckets) FromBucket(bucket, *into.add_buckets());
  FromBalance(report.balance, *into.mutable_balance());
}

void FromVerify(const VerifyReport& report, v1::VerifyLedgerResponse& into) {
  into.set_ok(report.ok());
  into.set_workspaces(report.workspaces);
  into.set_entries(report.entries);
  into.set_holds(report.holds);
  into.set_usage_records(report.usage_records);
  for (const std::string& violation : report.violations) into.add_violations(violation);
}

}  // namespace tollgate::billing
