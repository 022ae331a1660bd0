// One coarse wheel for all timers of a loop: setting and cancelling touch a few words and never the
// kernel. Not thread-safe. Times are arguments, so tests need no clock.
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
  // No timer is set.
  static constexpr int64_t kNever = INT64_MAX;

  explicit TimerWheel(int64_t now_us);

  // Due at the first tick that is not before now + delay.
  Id Add(int64_t now_us, int64_t delay_us, Callback callback);
  // Of a timer that has run or was cancelled: does nothing.
  void Cancel(Id id);
  // Runs what is due, in order of the ticks. Callbacks may add and cancel.
  void Advance(int64_t now_us);
  // When Advance should be called next; may be earlier than the next timer, never later.
  int64_t NextUs() const;
  int size() const { return size_; }
  // Drops every timer without running it.
  void Clear();

 private:
  static constexpr int kSlots = 512;  // 5.12 s a turn; later timers stay for more turns
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
  int64_t current_tick_;  // everything up to this tick has run
  int size_ = 0;
};

}  // namespace tollgate
