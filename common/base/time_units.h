// Spans of time in microseconds, the unit of all times.
#pragma once

#include <cstdint>

namespace tollgate {

inline constexpr int64_t kSecondUs = 1'000'000;
inline constexpr int64_t kMinuteUs = 60 * kSecondUs;
inline constexpr int64_t kHourUs = 60 * kMinuteUs;
inline constexpr int64_t kDayUs = 24 * kHourUs;

// The first multiple of `unit` that is not below `value`.
constexpr int64_t RoundUp(int64_t value, int64_t unit) {
  return value / unit * unit + (value % unit > 0 ? unit : 0);
}

}  // namespace tollgate
