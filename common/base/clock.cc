#include "common/base/clock.h"
#include "common/base/time_units.h"

#include <chrono>

namespace tollgate {
namespace {

int64_t FloorDays(int64_t wall_us) {
  int64_t days = wall_us / kDayUs;
  return wall_us % kDayUs < 0 ? days - 1 : days;
}

}  // namespace

SystemClock& SystemClock::Get() {
  static SystemClock clock;
  return clock;
}

int64_t SystemClock::WallUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t SystemClock::MonotonicUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int32_t UtcMonth(int64_t wall_us) {
  std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{FloorDays(wall_us)}}};
  return static_cast<int>(date.year()) * 100 +
         static_cast<int>(static_cast<unsigned>(date.month()));
}

int32_t UtcDay(int64_t wall_us) { return static_cast<int32_t>(FloorDays(wall_us)); }

int64_t UtcMonthStartUs(int32_t month) {
  std::chrono::sys_days day = std::chrono::year{month / 100} /
                              std::chrono::month{static_cast<unsigned>(month % 100)} /
                              std::chrono::day{1};
  return static_cast<int64_t>(day.time_since_epoch().count()) * kDayUs;
}

}  // namespace tollgate
