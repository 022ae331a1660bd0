// Whether the ledger has refused this gateway's clock. Request ids hold the time, and the ledger
// refuses ids that are far from its own. Shared by all loops of a process, without locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace tollgate::gateway {

class ClockCheck {
 public:
  // Only requests show that a clock is right again, so the gateway takes some after this time.
  static constexpr int64_t kPauseUs = 30'000'000;

  // Times are monotonic µs.
  void OnRefused(int64_t now_us) {
    refused_until_us_.store(now_us + kPauseUs, std::memory_order_relaxed);
  }
  bool IsRefused(int64_t now_us) const {
    return now_us < refused_until_us_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> refused_until_us_ = INT64_MIN;
};

}  // namespace tollgate::gateway
