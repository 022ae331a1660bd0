#include "services/dashboard/http/times.h"

#include <chrono>
#include <cstdio>

namespace tollgate::dashboard {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";

int Digits(std::string_view text, size_t from, size_t count) {
  int number = 0;
  for (const char c : text.substr(from, count)) number = number * 10 + (c - '0');
  return number;
}

}  // namespace

std::string FormatTime(int64_t unix_us) {
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_us / kUsPerSecond)};
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

std::optional<int64_t> ParseTime(std::string_view text) {
  using namespace std::chrono;
  if (text.size() != kForm.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool good = kForm[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == kForm[i];
    if (!good) return std::nullopt;
  }
  const year_month_day date{year(Digits(text, 0, 4)),
                            month(static_cast<unsigned>(Digits(text, 5, 2))),
                            day(static_cast<unsigned>(Digits(text, 8, 2)))};
  const int hour = Digits(text, 11, 2);
  const int minute = Digits(text, 14, 2);
  const int second = Digits(text, 17, 2);
  if (!date.ok() || date.year() < year(1970) || hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  const auto time = sys_days(date) + hours(hour) + minutes(minute) + seconds(second);
  return duration_cast<microseconds>(time.time_since_epoch()).count();
}

std::string FormatMonth(int32_t yyyymm) {
  char text[24];
  std::snprintf(text, sizeof text, "%04d-%02d", yyyymm / 100, yyyymm % 100);
  return text;
}

}  // namespace tollgate::dashboard
