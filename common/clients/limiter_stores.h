// Notices that several rate limiters answer that do not share their state: each would admit the
// whole of every limit. A limiter in memory has a new random id after each start, so an id that
// comes back after another one means that both are alive.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace tollgate {

class LimiterStores {
 public:
  // One for the process: its loops may reach different limiters.
  static LimiterStores& Get();

  // An answer from the store with this id came (AcquireResponse.store_id; empty: from a limiter
  // that does not say). Returns how many separate stores have answered lately: 1 is right.
  // Thread-safe.
  int Saw(const std::string& id, int64_t now_us);

 private:
  std::mutex mutex_;
  std::string last_;
  std::map<std::string, int64_t> seen_us_;
  int64_t split_us_ = 0;  // when an id last came back; 0: never
};

}  // namespace tollgate
