// The number of gateways that share limits while no limiter is reachable, as last reported by the
// limiters (AcquireResponse.gateways).
#pragma once

#include <cstdint>
#include <mutex>

namespace tollgate {

class LimiterGateways {
 public:
  // Each limiter sees a part of the calls, so the largest report within this time counts.
  static constexpr int64_t kMemoryUs = 60'000'000;

  // The instance of the process.
  static LimiterGateways& Get();

  // Records the number in a response; 0 if the limiter did not send it. Thread-safe.
  void Saw(int64_t gateways, int64_t now_us);
  // The last known number, which never expires, so that it holds through an outage. 0: none yet.
  int64_t count() const;

 private:
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  int64_t said_us_ = 0;
};

}  // namespace tollgate
