// A timer wheel for all timers of a loop: setting and cancelling a timer changes a few words and
// makes no system call. Not thread-safe. Time is an argument, so tests need no clock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace tollgate {

class TimerWheel {
 public:
  using Callback = std::function<void()>;
  using Id = uint64_t;
  static constexpr int64_t kTickUs = 10'000;
  // Result of NextUs() without timers.
  static constexpr int64_t kNever = INT64_MAX;

  explicit TimerWheel(int64_t now_us);

  // The timer is due at the first tick at or after now + delay.
  Id Add(int64_t now_us, int64_t delay_us, Callback callback);
  // No effect if the timer has run or was cancelled.
  void Cancel(Id id);
  // Runs the timers that are due, in the order of their ticks. Callbacks may add and cancel timers.
  void Advance(int64_t now_us);
  // When to call Advance next: maybe before the next timer is due, never after.
  int64_t NextUs() const;
  int size() const { return size_; }
  // Destroys all timers without running them.
  void Clear();

 private:
  static constexpr int kSlots = 512;  // 5.12 s per revolution; later timers wait for several
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    Callback callback;
    int64_t tick = 0;
    uint32_t generation = 1;
    uint32_t previous = kNone;
    uint32_t next = kNone;
    bool active = false;
  };

  uint32_t Allocate();
  void Unlink(uint32_t index);
  void RunSlot(int64_t tick);

  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  std::array<uint32_t, kSlots> heads_;
  std::array<uint64_t, kSlots / 64> occupied_{};
  int64_t current_tick_;  // all timers up to this tick have run
  int size_ = 0;
};

}  // namespace tollgate
