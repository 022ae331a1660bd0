#include "services/inference_router/balancer/retry_budget.h"

namespace tollgate::inference_router {

void RetryBudget::OnRequest() {
  // Two concurrent calls may save slightly too much.
  if (saved_.load(std::memory_order_relaxed) >= kMostSaved * kOne) return;
  saved_.fetch_add(kPercent * kOne / 100, std::memory_order_relaxed);
}

bool RetryBudget::TryTake(int64_t now_us) {
  int64_t saved = saved_.load(std::memory_order_relaxed);
  while (saved >= kOne) {
    if (saved_.compare_exchange_weak(saved, saved - kOne, std::memory_order_relaxed)) return true;
  }
  int64_t last_us = anyway_us_.load(std::memory_order_relaxed);
  return now_us - last_us >= kAnywayUs &&
         anyway_us_.compare_exchange_strong(last_us, now_us, std::memory_order_relaxed);
}

}  // namespace tollgate::inference_router
