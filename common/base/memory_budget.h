// A budget of memory shared by many holders: counts bytes in use against a limit. Thread-safe and
// lock-free; meant for amounts of several KiB at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tollgate {

class MemoryBudget {
 public:
  // What is given up, step by step, as usage approaches the limit.
  enum class Level : uint8_t {
    kNormal,
    kNoLargeBodies,  // from 85 % on
    kNoRequests,     // from 90 % on
    kCloseIdle,      // from 95 % on
  };

  explicit MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  Level level() const {
    // Divides first, so that a large limit does not overflow.
    const int64_t percent = limit_ / 100;
    const int64_t used_now = used();
    if (used_now < 85 * percent) return Level::kNormal;
    if (used_now < 90 * percent) return Level::kNoLargeBodies;
    return used_now < 95 * percent ? Level::kNoRequests : Level::kCloseIdle;
  }

  // Returns false and takes nothing if that would exceed the limit.
  bool TryTake(int64_t bytes);
  // May exceed the limit: for bytes that are in memory already.
  void Take(int64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  void Release(int64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

// A part of a budget, returned by the destructor. Without a budget it counts nothing. The budget
// must outlive it.
class MemoryReservation {
 public:
  explicit MemoryReservation(MemoryBudget* budget) : budget_(budget) {}
  ~MemoryReservation() { Shrink(0); }
  MemoryReservation(const MemoryReservation&) = delete;
  MemoryReservation& operator=(const MemoryReservation&) = delete;

  int64_t bytes() const { return bytes_; }
  // Raises the reservation to this many bytes; does nothing if it is as large already. Returns
  // false if the budget has no room.
  bool TryGrow(int64_t bytes);
  // As TryGrow, but ignores the limit.
  void Grow(int64_t bytes);
  // Lowers the reservation to this many bytes.
  void Shrink(int64_t bytes);

 private:
  MemoryBudget* const budget_;
  int64_t bytes_ = 0;
};

}  // namespace tollgate
