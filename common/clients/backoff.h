// Waiting between attempts of one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace tollgate {

// First at least half of first_ms, then about twice as long each time, up to max_ms; each with full
// jitter over its upper half, so that callers that failed together do not come back together.
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
