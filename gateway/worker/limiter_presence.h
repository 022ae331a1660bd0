// Tells the limiters every few seconds that this gateway is running: they divide the limits among
// the running gateways (docs/design/limits.md 8). Used by one loop of each process.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace tollgate::gateway {

class LimiterPresence : public std::enable_shared_from_this<LimiterPresence> {
 public:
  // With several limiters, each call goes to the next one. A limiter remembers a gateway for a
  // minute.
  static constexpr int64_t kIntervalMs = 5'000;

  LimiterPresence(Loop& loop, RateLimitClient& limiter) : loop_(loop), limiter_(limiter) {}

  void Start();
  // Makes no more calls to the limiter, whose client is about to be destroyed.
  void Stop();

 private:
  void ArmTimer();

  Loop& loop_;
  RateLimitClient& limiter_;
  uint64_t timer_ = 0;
};

}  // namespace tollgate::gateway
