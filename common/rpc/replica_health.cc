#include "common/rpc/replica_health.h"

#include <algorithm>

namespace tollgate::rpc {

bool ReplicaHealth::ProbeIsDue(int64_t now_us) const {
  return !probing_ && now_us - heard_us_ >= kQuietUs;
}

void ReplicaHealth::ProbeSent(int64_t now_us) {
  probing_ = true;
  if (unanswered_us_ == 0) unanswered_us_ = now_us;
}

void ReplicaHealth::ProbeEnded(Liveness found, int64_t now_us) {
  probing_ = false;
  recovering_ = found == Liveness::kServing;
  if (found == Liveness::kNoAnswer) return;  // Tick checks for silence
  Heard(now_us);
  if (found == Liveness::kUnreachable) return Eject(Reason::kUnreachable, now_us);
  if (found == Liveness::kNotServing) return Eject(Reason::kNotServing, now_us);
  if (state_ == State::kEjected && now_us >= ejected_until_us_) BeginTrial(now_us);
}

void ReplicaHealth::CallAnswered(int64_t now_us) {
  failures_ = 0;
  Heard(now_us);
  if (state_ == State::kTrial && ++answers_ >= kTrialCalls) {
    state_ = State::kUp;
    changed_us_ = now_us;
  }
}

void ReplicaHealth::CallFailed(int64_t now_us) {
  heard_us_ = 0;
  if (state_ == State::kEjected) return;
  if (++failures_ >= kFailures || state_ == State::kTrial) Eject(Reason::kFailing, now_us);
}

void ReplicaHealth::Tick(int64_t now_us) {
  const int64_t late_us = std::max<int64_t>(now_us - tick_us_ - 2 * kTickUs, 0);
  tick_us_ = now_us;
  if (unanswered_us_ != 0) {
    unanswered_us_ += late_us;
    if (now_us - unanswered_us_ >= kSilentUs) {
      recovering_ = false;
      Eject(Reason::kSilent, now_us);
    }
  }
  if (state_ == State::kTrial && now_us - changed_us_ >= kTrialUs) {
    state_ = State::kUp;
    changed_us_ = now_us;
  }
  if (state_ == State::kUp && now_us - changed_us_ >= kForgetUs) ejections_ = 0;
}

void ReplicaHealth::Heard(int64_t now_us) {
  heard_us_ = now_us;
  unanswered_us_ = 0;
}

void ReplicaHealth::Eject(Reason reason, int64_t now_us) {
  if (state_ == State::kEjected) return;
  state_ = State::kEjected;
  reason_ = reason;
  recovering_ = reason == Reason::kFailing;
  changed_us_ = now_us;
  failures_ = 0;
  ejected_until_us_ = now_us + std::min(kEjectionUs << std::min(ejections_, 10), kMaxEjectionUs);
  ++ejections_;
}

void ReplicaHealth::BeginTrial(int64_t now_us) {
  state_ = State::kTrial;
  changed_us_ = now_us;
  failures_ = 0;
  answers_ = 0;
}

}  // namespace tollgate::rpc
