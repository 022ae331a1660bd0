// Code whose decisions depend on the time takes a Clock, so that tests and the simulator control
// it. Durations are measured on the monotonic clock only.
#pragma once

#include <atomic>
#include <cstdint>

namespace tollgate {

class Clock {
 public:
  virtual ~Clock() = default;
  // Microseconds since the Unix epoch, UTC. May jump.
  virtual int64_t WallUs() const = 0;
  // Microseconds since an arbitrary fixed point. Never goes back.
  virtual int64_t MonotonicUs() const = 0;
};

// The clocks of the operating system.
class SystemClock : public Clock {
 public:
  // One for the whole process.
  static SystemClock& Get();
  int64_t WallUs() const override;
  int64_t MonotonicUs() const override;
};

// Reads the monotonic clock of the operating system.
inline int64_t MonotonicNowUs() { return SystemClock::Get().MonotonicUs(); }

// A clock for tests that moves only when the test moves it. Thread-safe.
class ManualClock : public Clock {
 public:
  explicit ManualClock(int64_t wall_us = 1'700'000'000'000'000) : wall_us_(wall_us) {}
  int64_t WallUs() const override { return wall_us_.load(); }
  int64_t MonotonicUs() const override { return monotonic_us_.load(); }
  void Advance(int64_t us) {
    wall_us_ += us;
    monotonic_us_ += us;
  }
  // Steps only the wall clock, as a time server might.
  void StepWall(int64_t us) { wall_us_ += us; }

 private:
  std::atomic<int64_t> wall_us_;
  std::atomic<int64_t> monotonic_us_{1'000'000'000};
};

// YYYYMM of a wall time, UTC (decision 5).
int32_t UtcMonth(int64_t wall_us);
// Days since 1970-01-01, UTC.
int32_t UtcDay(int64_t wall_us);
// The month after a month given as YYYYMM.
constexpr int32_t NextMonth(int32_t month) { return month % 100 == 12 ? month + 89 : month + 1; }
// First microsecond of a month given as YYYYMM, UTC.
int64_t UtcMonthStartUs(int32_t month);

}  // namespace tollgate
