#include "services/billing/rpc/convert.h"

#include "services/billing/domain/dead_letter.h"

namespace tollgate::billing {
namespace {

// A wrong length becomes the empty id, which the ledger refuses as invalid.
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

Surface ToSurface(v1::Surface surface) {
  return v1::Surface_IsValid(surface) ? static_cast<Surface>(surface) : Surface::kUnknown;
}

template <typename Request>
ResolveDeadLetter Resolve(const Request& request, DeadLetterState to) {
  return {ToId(request.request_id()),
          request.workspace_id(),
          request.number(),
          to,
          request.actor(),
          request.reason()};
}

void FromBucket(const UsageBucket& bucket, v1::UsageBucket& into) {
  into.set_model(bucket.model);
  into.set_day(bucket.day);
  into.set_requests(bucket.requests);
  FromUsage(bucket.usage, *into.mutable_usage());
  into.set_charged_nano_usd(bucket.charged_nano_usd);
}

}  // namespace

Operation ToOperation(const v1::AuthorizeItem& item) {
  Authorize authorize;
  authorize.request_id = ToId(item.request_id());
  authorize.workspace = item.workspace_id();
  authorize.key_id = item.key_id();
  authorize.model = item.model();
  authorize.rates = {item.price().input_pico_usd(), item.price().output_pico_usd()};
  authorize.price_version = item.price().version();
  authorize.prompt_bound = item.prompt_tokens_bound();
  authorize.output_bound = item.output_tokens_bound();
  authorize.check_only = item.check_only();
  authorize.attempt = item.attempt();
  if (item.has_key_quota_nano_usd()) authorize.key_quota_nano_usd = item.key_quota_nano_usd();
  authorize.surface = ToSurface(item.surface());
  authorize.streamed = item.streamed();
  authorize.client_request_id = item.client_request_id();
  authorize.idempotency_key_digest = item.idempotency_key_digest();
  authorize.idempotency_body_digest = item.idempotency_body_digest();
  return authorize;
}

Operation ToOperation(const v1::VoidItem& item) {
  return Void{ToId(item.request_id()), item.workspace_id(), item.reason(), item.refused()};
}

Operation ToOperation(const v1::MeterOp& meter) {
  const Id id = ToId(meter.request_id());
  switch (meter.op_case()) {
    case v1::MeterOp::kExtend:
      return Extend{id,
                    meter.workspace_id(),
                    meter.sequence(),
                    ToUsage(meter.extend().usage()),
                    meter.extend().authorized_total_nano_usd(),
                    meter.attempt()};
    case v1::MeterOp::kHeartbeat:
      return Heartbeat{id, meter.workspace_id(), meter.sequence(),
                       ToUsage(meter.heartbeat().usage()), meter.attempt()};
    case v1::MeterOp::kSettle: {
      const v1::SettleOp& op = meter.settle();
      Settle settle;
      settle.request_id = id;
      settle.workspace = meter.workspace_id();
      settle.sequence = meter.sequence();
      settle.usage = ToUsage(op.usage());
      settle.outcome = ToOutcome(op.outcome());
      settle.cut_by_credit = op.cut_by_credit();
      settle.estimated = op.estimated();
      settle.engine = op.engine_id();
      settle.attempt = meter.attempt();
      settle.first_token_us = op.first_token_us();
      return settle;
    }
    case v1::MeterOp::OP_NOT_SET:
      break;
  }
  // The empty id is refused as invalid.
  return Heartbeat{Id(), meter.workspace_id(), meter.sequence(), Usage(), 0};
}

Operation ToOperation(const v1::AddCreditRequest& request) {
  AddCredit command;
  command.workspace = request.workspace_id();
  command.command_id = request.request_id();
  command.amount_nano_usd = request.amount_nano_usd();
  command.granted = request.granted();
  command.open_only = true;
  command.actor = request.actor();
  command.reason = request.reason();
  return command;
}

Operation ToOperation(const v1::SetCapRequest& request) {
  SetCap command;
  command.workspace = request.workspace_id();
  command.command_id = request.request_id();
  if (request.has_cap_nano_usd()) command.cap_nano_usd = request.cap_nano_usd();
  command.open_only = true;
  command.actor = request.actor();
  return command;
}

Operation ToOperation(const v1::RepairClockRequest& request) {
  return RepairClock{request.workspace_id(), request.request_id(), request.actor(),
                     request.reason()};
}

ResolveDeadLetter ToResolve(const v1::RetryDeadLetterRequest& request) {
  return Resolve(request, DeadLetterState::kRetried);
}

ResolveDeadLetter ToResolve(const v1::WriteOffDeadLetterRequest& request) {
  return Resolve(request, DeadLetterState::kWrittenOff);
}

void FromDeadLetter(const DeadLetter& letter, v1::DeadLetter& into) {
  into.set_request_id(letter.id.ToBytes());
  into.set_number(letter.number);
  into.set_workspace_id(letter.workspace);
  into.set_at_us(letter.at_us);
  into.set_reason(static_cast<v1::DenyReason>(letter.reason));
  if (const auto settle = DecodeSettle(letter.operation, letter.id, letter.workspace)) {
    v1::SettleOp& op = *into.mutable_settle();
    FromUsage(settle->usage, *op.mutable_usage());
    op.set_outcome(static_cast<v1::Outcome>(settle->outcome));
    op.set_cut_by_credit(settle->cut_by_credit);
    op.set_estimated(settle->estimated);
    op.set_engine_id(settle->engine);
    op.set_first_token_us(settle->first_token_us);
  }
  into.set_state(static_cast<v1::DeadLetterState>(letter.state));
  into.set_resolved_us(letter.resolved_us);
  into.set_actor(letter.actor);
  into.set_note(letter.note);
}

void FromReply(const Reply& reply, v1::AuthorizeResult& into) {
  into.set_granted(reply.ok);
  into.set_denied_by(static_cast<v1::DenyReason>(reply.denied_by));
  into.set_retry_after_ms(reply.retry_after_ms);
  into.set_authorized_nano_usd(reply.authorized_nano_usd);
  into.set_slice_nano_usd(reply.slice_nano_usd);
}

void FromReply(const Reply& reply, v1::MeterResult& into) {
  into.set_ok(reply.ok);
  into.set_denied_by(static_cast<v1::DenyReason>(reply.denied_by));
  into.set_authorized_nano_usd(reply.authorized_nano_usd);
  into.set_charged_nano_usd(reply.charged_nano_usd);
}

void FromBalance(const Balance& balance, v1::Balance& into) {
  into.set_workspace_id(balance.workspace);
  into.set_paid_nano_usd(balance.paid_nano_usd);
  into.set_granted_nano_usd(balance.granted_nano_usd);
  into.set_held_nano_usd(balance.held_nano_usd);
  into.set_available_nano_usd(balance.paid_nano_usd + balance.granted_nano_usd -
                              balance.held_nano_usd);
  if (balance.cap_nano_usd) into.set_cap_nano_usd(*balance.cap_nano_usd);
  into.set_month(balance.month);
  into.set_month_spent_nano_usd(balance.month_spent_nano_usd);
  into.set_month_held_nano_usd(balance.month_held_nano_usd);
  into.set_open_holds(balance.open_holds);
}

void FromEntry(const Entry& entry, v1::Entry& into) {
  into.set_workspace_id(entry.workspace);
  into.set_sequence(entry.sequence);
  into.set_kind(std::string(EntryKindName(entry.kind)));
  into.set_request_id(entry.request);
  into.set_debit_account(std::string(AccountName(entry.debit)));
  into.set_credit_account(std::string(AccountName(entry.credit)));
  into.set_amount_nano_usd(entry.amount_nano_usd);
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
