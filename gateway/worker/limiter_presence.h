// Tells the limiters every few seconds that this gateway lives: they divide the limits among those
// that do (docs/design/limits.md 8). One loop only; one of each process has it.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace tollgate::gateway {

class LimiterPresence : public std::enable_shared_from_this<LimiterPresence> {
 public:
  // Each of several limiters is told in turn, and remembers it for a minute.
  static constexpr int64_t kIntervalMs = 5'000;

  LimiterPresence(Loop& loop, RateLimitClient& limiter) : loop_(loop), limiter_(limiter) {}

  void Start();
  // Calls the limiter no more: its client is about to be destroyed.
  void Stop();

 private:
  void ArmTimer();

  Loop& loop_;
  RateLimitClient& limiter_;
  uint64_t timer_ = 0;
};

}  // namespace tollgate::gateway
