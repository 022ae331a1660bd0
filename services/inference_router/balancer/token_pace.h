// How long an engine takes for a token of a whole answer: measured, so that the wait for an answer
// of which nothing is seen before its end has a bound that fits the engine (ADR 0058). Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tollgate::inference_router {

class TokenPace {
 public:
  // Answers needed for a measurement.
  static constexpr size_t kLeastAnswers = 8;
  // Shorter answers are mostly prompt.
  static constexpr int64_t kLeastTokens = 16;

  // took_us: from the start of the call to the end of the answer.
  void NoteAnswer(int64_t took_us, int64_t tokens);
  // Call when the measurement has proved wrong: the engine has to be measured again.
  void Forget();
  // The 99th percentile of the latest answers in microseconds per token; 0: not measured.
  int64_t p99_us() const { return p99_us_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::array<int64_t, 128> latest_{};
  size_t count_ = 0;  // of all answers since the last Forget
  std::atomic<int64_t> p99_us_{0};
};

}  // namespace tollgate::inference_router
