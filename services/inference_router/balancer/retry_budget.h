// Limits the requests of a pool that may be retried on a second engine. When engines fail because
// they are overloaded, retrying each request would double the load of the others (ADR 0030).
#pragma once

#include <atomic>
#include <cstdint>

namespace tollgate::inference_router {

// Thread-safe; one for each pool, shared by all loops.
class RetryBudget {
 public:
  // Each request adds a fifth of a retry; up to kMostSaved retries are saved.
  static constexpr int64_t kPercent = 20;
  static constexpr int64_t kMostSaved = 50;
  // Retries available at the start. One per second is always granted, so that a pool with few
  // requests can retry.
  static constexpr int64_t kFirst = 10;
  static constexpr int64_t kAnywayUs = 1'000'000;

  // Call when a request runs for the first time.
  void OnRequest();
  // Returns false if no retry is allowed now.
  bool TryTake(int64_t now_us);

 private:
  static constexpr int64_t kOne = 100;
  std::atomic<int64_t> saved_{kFirst * kOne};  // in hundredths of a retry
  std::atomic<int64_t> anyway_us_{0};          // when the last unsaved retry was granted
};

}  // namespace tollgate::inference_router
