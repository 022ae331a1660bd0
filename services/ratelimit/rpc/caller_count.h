// Counts the calling gateways: each sends its id with its calls and is forgotten a minute after the
// last.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

namespace tollgate::ratelimit {

class CallerCount {
 public:
  static constexpr size_t kMaxCallers = 1024;
  static constexpr int64_t kMemoryUs = 60'000'000;

  // Records a call of the process with this id (16 bytes; others are ignored). Returns how many
  // processes have called lately. Thread-safe.
  int64_t Saw(const std::string& id, int64_t now_us);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, int64_t> seen_us_;
  int64_t swept_us_ = 0;
};

}  // namespace tollgate::ratelimit
