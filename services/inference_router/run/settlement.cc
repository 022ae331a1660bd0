#include "services/inference_router/run/settlement.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "common/observability/log.h"
#include "common/rpc/error_detail.h"
#include "services/inference_router/run/admission.h"

namespace tollgate::inference_router {

using inference::v1::End;

bool Settlement::IsCharged() const {
  if (run_ == nullptr || !run_->accepted()) return false;
  // The caller has only what was delivered before, and nothing if the answer is not streamed
  // (decision 52).
  const bool broken = outcome_ == RunOutcome::kFailed || context_.sink->receiver_lost();
  return !broken || (run_->delivered() && context_.request.streamed());
}

// Whether the caller has an answer with neither text nor reasoning nor tool call (decision 83).
bool Settlement::IsEmpty() const {
  const bool ended = outcome_ == RunOutcome::kCompleted || IsCut(outcome_);
  return ended && !run_->meter().has_output() && !IsEmbedding(context_.request);
}

Measured Settlement::Measure() const {
  Measured measured = IsEmpty() ? Measured() : run_->meter().Measure();
  if (IsCut(outcome_)) {
    common::v1::Usage& usage = measured.usage;
    usage.set_completion_tokens(
        std::min(usage.completion_tokens(), context_.hold->spending().affordable()));
    usage.set_reasoning_tokens(std::min(usage.reasoning_tokens(), usage.completion_tokens()));
  }
  RouterMetrics& metrics = context_.host.metrics;
  if (measured.mismatch) {
    metrics.usage_mismatches.Increment();
    log::Warn("engine reported implausible usage",
              {{"engine", run_->engine_id()},
               {"request_id", HexEncode(context_.request.request_id())},
               context_.TraceField()});
  }
  if (measured.estimated) metrics.usage_estimated.Increment();
  metrics.prompt_tokens.Increment(static_cast<double>(measured.usage.prompt_tokens()));
  metrics.completion_tokens.Increment(static_cast<double>(measured.usage.completion_tokens()));
  metrics.engines.CountTokens(run_->engine_id(), measured.usage.completion_tokens());
  return measured;
}

void Settlement::Observe(const common::v1::Usage& usage, std::string_view error) const {
  if (run_ == nullptr) return;  // no engine was asked
  const RunHost& host = context_.host;
  host.metrics.genai.Observe(
      {.kind = context_.request.kind(),
       .engine = run_->engine().engine().kind(),
       .model = context_.route->unlisted ? std::string_view() : context_.request.model(),
       .error = error,
       .took_us = host.clock.MonotonicUs() - context_.arrived_us,
       .first_token_us = run_->streams() ? run_->first_output_us() : 0,
       .prompt_tokens = usage.prompt_tokens(),
       .completion_tokens = usage.completion_tokens()});
}

billing::v1::MeterOp Settlement::BuildSettleOp(const Measured& measured) const {
  billing::v1::MeterOp op = context_.hold->NewOp();
  billing::v1::SettleOp& settle = *op.mutable_settle();
  *settle.mutable_usage() = measured.usage;
  settle.set_outcome(outcome_ == RunOutcome::kClientGone ? billing::v1::OUTCOME_CLIENT_GONE
                     : outcome_ == RunOutcome::kFailed   ? billing::v1::OUTCOME_FAILED_MID_STREAM
                                                         : billing::v1::OUTCOME_COMPLETED);
  settle.set_cut_by_credit(outcome_ == RunOutcome::kCutByCredit);
  settle.set_estimated(measured.estimated);
  settle.set_engine_id(run_->engine_id());
  settle.set_first_token_us(run_->first_output_us());
  return op;
}

std::function<void()> Settlement::EndTicket(billing::v1::MeterOp& op) {
  if (!context_.ticket) return {};
  const LeaseTicket ticket = *std::exchange(context_.ticket, std::nullopt);
  return context_.host.leases->Finish(ticket, context_.hold->EndAdmission(op));
}

JournalSlot* Settlement::CloseHold() {
  context_.hold->Close();
  return std::exchange(context_.slot, nullptr);
}

Task<End> Settlement::Charge(const Error& failure) {
  const Measured measured = Measure();
  Observe(measured.usage, outcome_ == RunOutcome::kFailed ? failure.row().name : "");
  billing::v1::MeterOp op = BuildSettleOp(measured);
  const common::v1::Usage& usage = measured.usage;
  context_.slot->SetUsage(usage.prompt_tokens(), usage.completion_tokens());
  context_.slot->SetDetails(usage.cached_tokens(), usage.cache_write_tokens(),
                            usage.reasoning_tokens());
  const Clock& clock = context_.host.clock;
  if (context_.trace) {
    context_.trace->SetUsage(usage);
    context_.trace->BeginSettle(clock.MonotonicUs());
    op.set_traceparent(context_.trace->SettleTraceparent());
  }
  std::function<void()> on_answer = EndTicket(op);
  const Settled settled =
      co_await context_.host.settler.Settle(std::move(op), CloseHold(), std::move(on_answer));
  if (context_.trace) context_.trace->EndSettle(clock.MonotonicUs());
  if (settled.durability == Durability::kOutbox) {
    context_.host.metrics.settled_through_outbox.Increment();
  }
  End end = BuildEnd(measured, settled);
  if (settled.durability == Durability::kNone) context_.host.metrics.not_durable.Increment();
  if (outcome_ == RunOutcome::kFailed) {
    rpc::ToDetail(failure, *end.mutable_error());
  } else if (settled.durability == Durability::kNone) {
    rpc::ToDetail(Unavailable(Reason::kUsageNotRecorded, "usage could not be recorded").error,
                  *end.mutable_error());
  }
  co_return end;
}

End Settlement::BuildEnd(const Measured& measured, const Settled& settled) const {
  End end;
  *end.mutable_usage() = measured.usage;
  end.set_cut_by_credit(outcome_ == RunOutcome::kCutByCredit);
  end.set_estimated(measured.estimated);
  const Spending& spending = context_.hold->spending();
  // The amount that the ledger has charged, usually 0 after a refusal. Without its answer, the
  // amount that it will charge.
  end.set_charged_nano_usd(settled.charged_nano_usd.value_or(std::min(
      spending.ChargeNanoUsd(measured.usage.prompt_tokens(), measured.usage.completion_tokens()),
      spending.authorized_nano_usd())));
  return end;
}

void Settlement::LeaveHold() {
  if (JournalSlot* slot = CloseHold()) context_.host.journal.Release(slot);
}

Task<void> Settlement::Release() {
  billing::v1::MeterOp op = context_.hold->NewOp();
  op.mutable_settle()->set_outcome(billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  op.mutable_settle()->set_engine_id(run_ != nullptr ? run_->engine_id() : "");
  std::function<void()> on_answer = EndTicket(op);
  co_await context_.host.settler.Release(std::move(op), CloseHold(), std::move(on_answer));
}

}  // namespace tollgate::inference_router
