#include "services/cli/expiry.h"

#include <charconv>
#include <chrono>
#include <cstdio>

namespace tollgate::cli {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kLongestSeconds = int64_t{100} * 366 * 86400;

std::optional<int64_t> ParseSpan(const std::string& text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, count);
  if (problem != std::errc() || stop + 1 != end || count <= 0) return std::nullopt;
  const int64_t unit = *stop == 'd' ? 86400 : *stop == 'h' ? 3600 : *stop == 'm' ? 60 : 0;
  if (unit == 0 || count > kLongestSeconds / unit) return std::nullopt;
  return count * unit * kUsPerSecond;
}

std::optional<int64_t> ParseMoment(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &used) != 3 || used != 10) {
    return std::nullopt;
  }
  if (text.size() > 10) {
    int more = 0;
    if (std::sscanf(text.c_str() + 10, "T%2u:%2u:%2uZ%n", &hour, &minute, &second, &more) != 3 ||
        more != 10 || text.size() != 20 || hour > 23 || minute > 59 || second > 59) {
      return std::nullopt;
    }
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return (days * 86400 + hour * 3600 + minute * 60 + second) * kUsPerSecond;
}

}  // namespace

std::optional<int64_t> ParseExpiry(const std::string& text, int64_t now_us) {
  if (text == "never") return 0;
  if (const auto span = ParseSpan(text)) return now_us + *span;
  const auto moment = ParseMoment(text);
  if (!moment || *moment <= now_us) return std::nullopt;
  return moment;
}

}  // namespace tollgate::cli
