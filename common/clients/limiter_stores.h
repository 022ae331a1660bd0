// Detects rate limiters that do not share their state: each would admit every limit in full. A
// limiter in memory has a new random id after each start, so an id that returns after another one
// means that both are running.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tollgate {

class LimiterStores {
 public:
  // The instance of the process, since its loops may reach different limiters.
  static LimiterStores& Get();

  // Records the store id of a response (AcquireResponse.store_id; empty if the limiter does not
  // send it). Returns the number of separate stores seen lately; it should be 1. Thread-safe.
  int Saw(const std::string& id, int64_t now_us);

 private:
  std::mutex mutex_;
  std::string last_;
  std::map<std::string, int64_t> seen_us_;
  int64_t split_us_ = 0;  // when an id last returned; 0: never
};

}  // namespace tollgate
