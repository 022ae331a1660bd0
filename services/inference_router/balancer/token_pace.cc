#include "services/inference_router/balancer/token_pace.h"

#include <algorithm>

namespace tollgate::inference_router {

void TokenPace::NoteAnswer(int64_t took_us, int64_t tokens) {
  if (tokens < kLeastTokens) return;
  const std::lock_guard lock(mutex_);
  latest_[count_++ % latest_.size()] = std::max<int64_t>(took_us / tokens, 1);
  if (count_ < kLeastAnswers) return;
  auto sorted = latest_;
  const auto end = sorted.begin() + static_cast<ptrdiff_t>(std::min(count_, sorted.size()));
  const auto p99 = sorted.begin() + (end - sorted.begin()) * 99 / 100;
  std::nth_element(sorted.begin(), p99, end);
  p99_us_.store(*p99, std::memory_order_relaxed);
}

void TokenPace::Forget() {
  const std::lock_guard lock(mutex_);
  count_ = 0;
  p99_us_.store(0, std::memory_order_relaxed);
}

}  // namespace tollgate::inference_router
