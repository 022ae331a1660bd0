#include "common/base/memory_budget.h"

namespace tollgate {

bool MemoryBudget::TryTake(int64_t bytes) {
  const int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= limit_) return true;
  Release(bytes);
  return false;
}

bool MemoryReservation::TryGrow(int64_t bytes) {
  if (budget_ == nullptr || bytes <= bytes_) return true;
  if (!budget_->TryTake(bytes - bytes_)) return false;
  bytes_ = bytes;
  return true;
}

void MemoryReservation::Grow(int64_t bytes) {
  if (budget_ == nullptr || bytes <= bytes_) return;
  budget_->Take(bytes - bytes_);
  bytes_ = bytes;
}

void MemoryReservation::Shrink(int64_t bytes) {
  if (bytes >= bytes_) return;
  budget_->Release(bytes_ - bytes);
  bytes_ = bytes;
}

}  // namespace tollgate
