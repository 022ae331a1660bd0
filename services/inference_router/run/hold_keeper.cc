#include "services/inference_router/run/hold_keeper.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "common/clients/backoff.h"
#include "common/observability/log.h"

namespace tollgate::inference_router {
namespace {

using billing::v1::MeterResult;

// Pauses between the extensions of a used-up hold.
constexpr int64_t kFirstPauseMs = 50;
constexpr int64_t kLongestPauseMs = 1'000;

ExtendAnswer AnswerOf(const Result<MeterResult>& result) {
  if (!result.ok()) return ExtendAnswer::kNoAnswer;
  switch (result->denied_by()) {
    case billing::v1::DENY_REASON_UNSPECIFIED:
      return ExtendAnswer::kGranted;
    case billing::v1::DENY_REASON_HELD:
      return ExtendAnswer::kHeld;
    case billing::v1::DENY_REASON_CAP:
      return ExtendAnswer::kCap;
    case billing::v1::DENY_REASON_NO_CREDIT:
    case billing::v1::DENY_REASON_FROZEN:
    case billing::v1::DENY_REASON_QUOTA:
      return ExtendAnswer::kNoCredit;
    case billing::v1::DENY_REASON_CLOSED:  // also: another attempt has taken over the hold
    case billing::v1::DENY_REASON_ID_REUSE:
    case billing::v1::DENY_REASON_INVALID:  // the ledger has no such hold
      return ExtendAnswer::kClosed;
    default:  // no decision
      return ExtendAnswer::kNoAnswer;
  }
}

}  // namespace

HoldKeeper::HoldKeeper(Loop& loop, MeteringClient& metering, Clock& clock, JournalSlot* slot,
                       RouterMetrics& metrics, Options options)
    : loop_(loop),
      metering_(metering),
      clock_(clock),
      slot_(slot),
      metrics_(metrics),
      options_(std::move(options)),
      spending_(options_.spending),
      answered_(loop) {}

billing::v1::MeterOp HoldKeeper::NewOp() {
  billing::v1::MeterOp op;
  op.set_request_id(options_.request_id);
  op.set_workspace_id(options_.workspace_id);
  op.set_attempt(options_.attempt);
  op.set_sequence(slot_ != nullptr ? slot_->NextSequence() : ++sequence_without_slot_);
  if (options_.admission && !registered_) *op.mutable_admission() = *options_.admission;
  return op;
}

int64_t HoldKeeper::EndAdmission(billing::v1::MeterOp& settlement) const {
  const int64_t admitted = options_.admission->authorized_nano_usd();
  if (admission_sent_) return admitted;
  const billing::v1::SettleOp& settle = settlement.settle();
  const bool free = settle.outcome() == billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT;
  const int64_t kept =
      free ? 0
           : std::min(admitted, spending_.HoldNanoUsd(settle.usage().prompt_tokens(),
                                                      settle.usage().completion_tokens()));
  settlement.mutable_admission()->set_authorized_nano_usd(kept);
  return kept;
}

void HoldKeeper::OnResult(const Result<MeterResult>& result) {
  if (!options_.admission || registered_ || !result.ok() || !result->ok()) return;
  registered_ = true;
  if (auto callback = std::exchange(on_registered_, {})) callback();
}

void HoldKeeper::StartExtension(int64_t total_nano_usd, const common::v1::Usage& usage) {
  billing::v1::MeterOp op = NewOp();
  op.mutable_extend()->set_authorized_total_nano_usd(total_nano_usd);
  *op.mutable_extend()->mutable_usage() = usage;
  reported_output_ |= usage.completion_tokens() > 0;
  spending_.OnExtensionSent();
  admission_sent_ |= op.has_admission();
  loop_.Spawn(SendExtension(shared_from_this(), std::move(op)));
}

Task<void> HoldKeeper::SendExtension(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op) {
  const auto result = co_await self->metering_.Meter(std::move(op), self->options_.timeout_ms);
  const ExtendAnswer answer = AnswerOf(result);
  self->spending_.OnAnswer(answer, result.ok() ? result->authorized_nano_usd() : 0,
                           self->clock_.MonotonicUs());
  self->metrics_.CountExtension(answer);
  self->OnResult(result);
  if (answer == ExtendAnswer::kClosed) self->MarkClosedByLedger();
  self->answered_.NotifyAll();
}

Task<void> HoldKeeper::SendHeartbeat(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op) {
  // A lost heartbeat is covered by the next one.
  const auto result = co_await self->metering_.Meter(std::move(op), self->options_.timeout_ms);
  self->OnResult(result);
  if (result.ok() && result->denied_by() == billing::v1::DENY_REASON_CLOSED) {
    self->MarkClosedByLedger();
  }
}

// The authorized amount has been returned to the workspace, so nothing more may be delivered.
void HoldKeeper::MarkClosedByLedger() {
  if (closed_ || closed_by_ledger_) return;  // closed_: by this router's own settlement
  closed_by_ledger_ = true;
  metrics_.holds_lost.Increment();
  log::Warn(
      "the ledger has closed the hold of a running request: it expired, or the gateway gave up on "
      "this attempt; ending the request",
      {{"request_id", HexEncode(options_.request_id)},
       {"attempt", options_.attempt},
       {options_.trace_id.empty() ? "" : "trace_id", options_.trace_id}});
  answered_.NotifyAll();
  if (auto callback = std::exchange(on_closed_, {})) callback();
}

void HoldKeeper::Interrupt() {
  interrupted_ = true;
  answered_.NotifyAll();
}

void HoldKeeper::ExtendAhead(const common::v1::Usage& usage) {
  const int64_t now_us = clock_.MonotonicUs();
  spending_.OnOutput(usage.completion_tokens(), now_us);
  if (closed_ || !spending_.WantsExtension(usage.completion_tokens(), now_us)) return;
  StartExtension(spending_.NextTotalNanoUsd(usage.completion_tokens()), usage);
}

Task<Coverage> HoldKeeper::Ensure(int64_t output_tokens, const common::v1::Usage& usage,
                                  Patience patience) {
  const int64_t begun_us = clock_.MonotonicUs();
  Backoff backoff(kFirstPauseMs, kLongestPauseMs);
  bool asked = false;
  // Whether the latest extension asked only for these tokens. The reason for which a whole slice is
  // refused need not apply to the next token.
  bool least = false;
  while (output_tokens > spending_.affordable()) {
    if (interrupted_) co_return Coverage::kInterrupted;
    if (closed_by_ledger_) co_return Coverage::kClosed;
    if (spending_.extension_pending()) {
      co_await answered_.Wait();
      continue;
    }
    const ExtendAnswer answer = asked ? spending_.last_answer() : ExtendAnswer::kGranted;
    if (answer == ExtendAnswer::kNoCredit || answer == ExtendAnswer::kCap) {
      if (least) co_return Coverage::kNoCredit;
      least = true;
    } else if (answer != ExtendAnswer::kGranted) {
      const bool held = answer == ExtendAnswer::kHeld;
      // Instead of a slice, ask only for these tokens, which may still be covered.
      const bool try_least = held && !least;
      const int64_t waited_ms = (clock_.MonotonicUs() - begun_us) / 1000;
      const int64_t left_ms = (held ? patience.held_ms : patience.no_answer_ms) - waited_ms;
      if (!try_least) {
        if (left_ms <= 0) co_return held ? Coverage::kHeld : Coverage::kNoAnswer;
        co_await answered_.WaitFor(std::min(backoff.NextMs(), left_ms));
        if (interrupted_ || closed_by_ledger_) continue;
      }
      least = true;
    }
    asked = true;
    StartExtension(
        least ? spending_.HoldNanoUsd(output_tokens) : spending_.NextTotalNanoUsd(output_tokens),
        usage);
  }
  co_return Coverage::kPaid;
}

void HoldKeeper::Heartbeat(const common::v1::Usage& usage) {
  if (closed_ || closed_by_ledger_) return;
  billing::v1::MeterOp op = NewOp();
  *op.mutable_heartbeat()->mutable_usage() = usage;
  reported_output_ |= usage.completion_tokens() > 0;
  admission_sent_ |= op.has_admission();
  loop_.Spawn(SendHeartbeat(shared_from_this(), std::move(op)));
}

}  // namespace tollgate::inference_router
