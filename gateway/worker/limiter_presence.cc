#include "gateway/worker/limiter_presence.h"

namespace tollgate::gateway {

void LimiterPresence::Start() {
  loop_.Spawn(limiter_.Present());
  ArmTimer();
}

void LimiterPresence::ArmTimer() {
  timer_ = loop_.RunAfter(kIntervalMs, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Start();
  });
}

void LimiterPresence::Stop() {
  if (timer_ != 0) loop_.CancelTimer(timer_);
  timer_ = 0;
}

}  // namespace tollgate::gateway
