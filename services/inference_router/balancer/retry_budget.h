// How many requests of a pool may be tried on a second engine. When engines fail because they have
// too much to do, a second try of each request would double what the others get (ADR 0030).
#pragma once

#include <atomic>
#include <cstdint>

namespace tollgate::inference_router {

// Thread-safe; one for each pool, shared by all loops.
class RetryBudget {
 public:
  // Each request allows a fifth of a retry; up to kMostSaved are kept for later.
  static constexpr int64_t kPercent = 20;
  static constexpr int64_t kMostSaved = 50;
  // There at the start; and one a second in any case, so that a pool with few requests may retry.
  static constexpr int64_t kFirst = 10;
  static constexpr int64_t kAnywayUs = 1'000'000;

  // A request runs for the first time.
  void OnRequest();
  // False: no retry now.
  bool TryTake(int64_t now_us);

 private:
  static constexpr int64_t kOne = 100;
  std::atomic<int64_t> saved_{kFirst * kOne};  // in hundredths of a retry
  std::atomic<int64_t> anyway_us_{0};          // when one was given that was not saved
};

}  // namespace tollgate::inference_router
