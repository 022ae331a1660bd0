#include "services/billing/rpc/convert.h"

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

void FromBucket(const UsageBucket& bucket, v1::UsageBucket& into) {
  into.set_model(bucket.model);
  into.set_day(bucket.day);
  into.set_requests(bucket.requests);
  FromUsage(bucket.usage, *into.mutable_usage());
  into.set_charged_nano_usd(bucket.charged_nano_usd);
}

Authorize ToAuthorize(const v1::AuthorizeItem& item) {
  Authorize authorize;
  authorize.request_id = ToId(item.request_id());
  authorize.workspace = item.workspace_id();
  authorize.key_id = item.key_id();
  authorize.model = item.model();
  authorize.rates = {item.price().input_pico_usd(), item.price().output_pico_usd()};
  authorize.price_version = item.price().version();
  authorize.prompt_bound = item.prompt_tokens_bound();
  authorize.output_bound = item.output_tokens_bound();
  for (const v1::FallbackModel& from : item.fallbacks()) {
    authorize.fallbacks.push_back({from.model(),
                                   {from.price().input_pico_usd(), from.price().output_pico_usd()},
                                   from.price().version(),
                                   from.prompt_tokens_bound(),
                                   from.output_tokens_bound()});
  }
  authorize.candidate = item.candidate();
  authorize.check_only = item.check_only();
  authorize.attempt = item.attempt();
  if (item.has_key_quota_nano_usd()) authorize.key_quota_nano_usd = item.key_quota_nano_usd();
  authorize.quota_keys.assign(item.quota_keys().begin(), item.quota_keys().end());
  authorize.surface = ToSurface(item.surface());
  authorize.streamed = item.streamed();
  authorize.client_request_id = item.client_request_id();
  authorize.idempotency_key_digest = item.idempotency_key_digest();
  authorize.idempotency_body_digest = item.idempotency_body_digest();
  return authorize;
}

// Returns null if the operation has no admission.
std::shared_ptr<const Admission> ToAdmission(const v1::MeterOp& meter) {
  if (!meter.has_admission()) return nullptr;
  const v1::Admission& from = meter.admission();
  return std::make_shared<const Admission>(
      Admission{ToAuthorize(from.item()), from.lessee(), from.month(), from.authorized_nano_usd()});
}

}  // namespace

Operation ToOperation(const v1::AuthorizeItem& item) { return ToAuthorize(item); }

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
                    meter.attempt(),
                    ToAdmission(meter)};
    case v1::MeterOp::kHeartbeat:
      return Heartbeat{id,
                       meter.workspace_id(),
                       meter.sequence(),
                       ToUsage(meter.heartbeat().usage()),
                       meter.attempt(),
                       ToAdmission(meter)};
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
      settle.admission = ToAdmission(meter);
      return settle;
    }
    case v1::MeterOp::OP_NOT_SET:
      break;
  }
  // The ledger refuses the empty id as invalid.
  return Heartbeat{Id(), meter.workspace_id(), meter.sequence(), Usage(), 0};
}

Operation ToOperation(const v1::TakeLeaseRequest& request) {
  return TakeLease{request.workspace_id(),  request.lessee(),          request.month(),
                   request.used_nano_usd(), request.wanted_nano_usd(), request.settled_nano_usd()};
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

void FromReply(const Reply& reply, v1::TakeLeaseResponse& into) {
  into.set_denied_by(static_cast<v1::DenyReason>(reply.denied_by));
  into.set_month(reply.lease.month);
  into.set_granted_nano_usd(reply.lease.granted_nano_usd);
  into.set_valid_ms(reply.lease.valid_ms);
  into.set_recalled(reply.lease.recalled);
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

void FromReceipt(const ReceiptRecord& record, v1::GetReceiptResponse& into) {
  const Hold& hold = record.hold;
  into.set_matches(record.matches);
  v1::GenerationReceipt& receipt = *into.mutable_receipt();
  receipt.set_request_id(hold.id.ToBytes());
  receipt.set_client_request_id(hold.client_request_id);
  receipt.set_model(hold.model);
  receipt.set_surface(static_cast<v1::Surface>(hold.surface));
  receipt.set_streamed(hold.streamed);
  receipt.set_open(hold.state == HoldState::kOpen);
  receipt.set_outcome(static_cast<v1::Outcome>(hold.outcome));
  receipt.set_cut_by_credit(hold.cut_by_credit);
  receipt.set_estimated(hold.estimated);
  FromUsage(hold.BillableUsage(), *receipt.mutable_usage());
  receipt.mutable_price()->set_input_pico_usd(hold.rates.input_pico_usd);
  receipt.mutable_price()->set_output_pico_usd(hold.rates.output_pico_usd);
  receipt.mutable_price()->set_version(hold.price_version);
  receipt.set_charged_nano_usd(hold.charged_nano_usd);
  receipt.set_created_us(hold.created_us);
  receipt.set_closed_us(hold.closed_us);
  receipt.set_first_token_us(hold.first_token_us);
}

void FromUsage(const UsageReport& report, v1::GetUsageResponse& into) {
  FromBucket(report.total, *into.mutable_total());
  for (const UsageBucket& bucket : report.buckets) FromBucket(bucket, *into.add_buckets());
  FromBalance(report.balance, *into.mutable_balance());
}

}  // namespace tollgate::billing
