#include "common/clients/batcher.h"

#include <algorithm>

namespace tollgate {

bool BatchQueue::Enqueue(std::shared_ptr<Pending> call) {
  if (waiting_.size() >= kMaxWaiting) {
    call->error = Error{.id = ErrorId::kServiceUnavailable,
                        .internal = "too many calls are waiting for one service"};
    return true;
  }
  Pending& pending = *call;
  waiting_.push_back(std::move(call));
  if (at_once_) Flush();
  if (pending.done) return true;
  PlanSweep();
  PlanFlush();
  return false;
}

std::optional<Error> BatchQueue::FailureOf(Pending& call) {
  if (call.done || call.error) return std::move(call.error);
  return Error{.id = ErrorId::kServiceUnavailable, .internal = "the call was cancelled"};
}

void BatchQueue::Finish(Pending& call, Resume resume) {
  if (std::exchange(call.done, true)) return;  // timed out
  (call.waiter.*resume)(true);
}

void BatchQueue::FailAll(Batch& batch, const Error& error, Resume resume) {
  for (const auto& call : batch.calls) {
    if (!call->done) call->error = error;
    Finish(*call, resume);
  }
}

int64_t BatchQueue::LeftMs(const Batch& batch) const {
  int64_t deadline_us = 0;
  for (const auto& call : batch.calls) deadline_us = std::max(deadline_us, call->deadline_us);
  return std::max<int64_t>((deadline_us - NowUs()) / 1000, 1);
}

// Returns true if the call's time is over; it then fails.
bool BatchQueue::Expire(Pending& call, int64_t now_us) {
  if (now_us < call.deadline_us) return false;
  if (!call.done) {
    call.error =
        Error{.id = ErrorId::kServiceUnavailable, .internal = "the service did not answer in time"};
  }
  Finish(call, &Waiter::Resume);
  return true;
}

void BatchQueue::PlanFlush() {
  if (flush_planned_ || waiting_.empty()) return;
  flush_planned_ = true;
  loop_.AtEndOfTurn([self = shared_from_this()] {
    self->flush_planned_ = false;
    self->Flush();
  });
}

void BatchQueue::PlanSweep() {
  if (sweep_planned_) return;
  sweep_planned_ = true;
  loop_.RunAfter(kSweepMs, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Sweep();
  });
}

void BatchQueue::Sweep() {
  sweep_planned_ = false;
  const int64_t now_us = NowUs();
  std::erase_if(waiting_, [&](const auto& call) { return Expire(*call, now_us); });
  for (const auto& batch : running_) {
    for (const auto& call : batch->calls) Expire(*call, now_us);
  }
  Flush();
  if (!waiting_.empty() || !running_.empty()) PlanSweep();
}

bool BatchQueue::MaySend() const {
  if (static_cast<int>(running_.size()) < max_in_flight_) return true;
  const int64_t stuck_us = NowUs() - kStuckUs;
  const auto stuck = std::ranges::count_if(
      running_, [&](const auto& batch) { return batch->since_us <= stuck_us; });
  return running_.size() < kMaxStuck &&
         static_cast<int64_t>(running_.size()) - stuck < max_in_flight_;
}

void BatchQueue::Flush() {
  while (!waiting_.empty() && MaySend()) {
    const size_t count = std::min(waiting_.size(), kMaxItems);
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(count);
    auto batch = std::make_shared<Batch>();
    batch->calls.assign(waiting_.begin(), end);
    batch->since_us = NowUs();
    waiting_.erase(waiting_.begin(), end);
    running_.push_back(batch);
    Send(std::move(batch));
  }
}

}  // namespace tollgate
