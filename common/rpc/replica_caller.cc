#include "common/rpc/replica_caller.h"

#include "common/base/clock.h"

namespace tollgate::rpc {

Attempts::Attempts(std::shared_ptr<Replicas> replicas, int64_t timeout_ms, Moves moves,
                   const std::shared_ptr<Replica>& first)
    : replicas_(std::move(replicas)),
      deadline_us_(SystemClock::Get().MonotonicUs() + timeout_ms * 1000),
      moves_(moves) {
  replicas_->CountCall();
  Begin(first && replicas_->InUse(*first) ? first : replicas_->Pick());
}

void Attempts::Begin(std::shared_ptr<Replica> replica) {
  last_ = moves_ == Moves::kNo || ++sent_ == kMaxReplicasOfACall || replicas_->size() == 1;
  std::function<void()> abandon;
  if (moves_ == Moves::kYes) abandon = [this] { cancel_.Cancel(); };
  use_.emplace(std::move(replica), std::move(abandon), true);
}

int64_t Attempts::left_ms() const {
  return (deadline_us_ - SystemClock::Get().MonotonicUs()) / 1000;
}

bool Attempts::MoveOn(const Error* error) {
  const bool answered = error == nullptr || error->id != ErrorId::kServiceUnavailable;
  if (!use_->abandoned()) replica()->CallEnded(answered);
  if (answered || last_ || SystemClock::Get().MonotonicUs() >= deadline_us_) return false;
  std::shared_ptr<Replica> other = replicas_->Pick(replica().get());
  if (other == replica() || !replicas_->TakeRetry()) return false;
  Begin(std::move(other));
  return true;
}

}  // namespace tollgate::rpc
