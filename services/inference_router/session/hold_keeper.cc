#include "services/inference_router/session/hold_keeper.h"

namespace tollgate::inference_router {

HoldKeeper::HoldKeeper(Loop& loop, MeteringClient& metering, Clock& clock, JournalSlot* slot,
                       Options options)
    : loop_(loop),
      metering_(metering),
      clock_(clock),
      slot_(slot),
      options_(std::move(options)),
      spending_(options_.spending),
      answered_(loop) {}

billing::v1::MeterOp HoldKeeper::NewOp() {
  billing::v1::MeterOp op;
  op.set_request_id(options_.request_id);
  op.set_workspace_id(options_.workspace_id);
  op.set_sequence(slot_ != nullptr ? slot_->NextSequence() : ++sequence_without_slot_);
  return op;
}

billing::v1::MeterOp HoldKeeper::NewExtendOp(int64_t total_nano_usd,
                                             const common::v1::Usage& usage) {
  billing::v1::MeterOp op = NewOp();
  op.mutable_extend()->set_authorized_total_nano_usd(total_nano_usd);
  *op.mutable_extend()->mutable_usage() = usage;
  spending_.OnExtensionSent();
  return op;
}

Task<void> HoldKeeper::SendExtension(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op) {
  auto answer = co_await self->metering_.Meter(std::move(op), self->options_.timeout_ms);
  const int64_t now_us = self->clock_.MonotonicUs();
  if (answer.ok()) {
    self->spending_.OnAnswer(answer->authorized_nano_usd(), now_us);
  } else {
    self->spending_.OnNoAnswer(now_us);
  }
  self->answered_.NotifyAll();
}

Task<void> HoldKeeper::SendHeartbeat(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op) {
  // The next heartbeat makes up for a lost one.
  (void)co_await self->metering_.Meter(std::move(op), self->options_.timeout_ms);
}

void HoldKeeper::ExtendAhead(const common::v1::Usage& usage) {
  if (closed_ || !spending_.WantsExtension(usage.completion_tokens(), clock_.MonotonicUs())) return;
  loop_.Spawn(
      SendExtension(shared_from_this(),
                    NewExtendOp(spending_.NextTotalNanoUsd(usage.completion_tokens()), usage)));
}

Task<bool> HoldKeeper::Ensure(int64_t output_tokens, const common::v1::Usage& usage) {
  while (output_tokens > spending_.affordable()) {
    if (spending_.extension_pending()) {
      co_await answered_.Wait();
      continue;
    }
    if (spending_.RefusedRecently(clock_.MonotonicUs())) co_return false;
    auto self = shared_from_this();
    billing::v1::MeterOp op = NewExtendOp(spending_.NextTotalNanoUsd(output_tokens), usage);
    co_await SendExtension(std::move(self), std::move(op));
  }
  co_return true;
}

void HoldKeeper::Heartbeat(const common::v1::Usage& usage) {
  if (closed_) return;
  billing::v1::MeterOp op = NewOp();
  *op.mutable_heartbeat()->mutable_usage() = usage;
  loop_.Spawn(SendHeartbeat(shared_from_this(), std::move(op)));
}

}  // namespace tollgate::inference_router
