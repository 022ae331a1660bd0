// Delays between the attempts of one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace tollgate {

// Exponential back-off from first_ms up to max_ms. Each delay is random between half of its nominal
// value and all of it, so that callers that failed together do not retry together.
class Backoff {
 public:
  Backoff(int64_t first_ms, int64_t max_ms) : next_ms_(first_ms), max_ms_(max_ms) {}
  int64_t NextMs() {
    thread_local std::minstd_rand random(std::random_device{}());
    int64_t ceiling = next_ms_;
    next_ms_ = std::min(next_ms_ * 2, max_ms_);
    return std::uniform_int_distribution<int64_t>(ceiling / 2, ceiling)(random);
  }

 private:
  int64_t next_ms_;
  int64_t max_ms_;
};

}  // namespace tollgate
