// Among how many gateways limits are divided while no limiter can be reached, as the limiters last
// said (AcquireResponse.gateways).
#pragma once

#include <cstdint>
#include <mutex>

namespace tollgate {

class LimiterGateways {
 public:
  // Each limiter sees a part of the calls, so the most that any of them said within this time.
  static constexpr int64_t kMemoryUs = 60'000'000;

  // One for the process.
  static LimiterGateways& Get();

  // An answer with this number came; 0: the limiter did not say. Thread-safe.
  void Saw(int64_t gateways, int64_t now_us);
  // The last number that was said, however long ago: in an outage it stays. 0: none so far.
  int64_t count() const;

 private:
  mutable std::mutex mutex_;
  int64_t count_ = 0;
  int64_t said_us_ = 0;
};

}  // namespace tollgate
