#include "services/dashboard/transcode/time_text.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "common/base/ascii.h"
#include "services/dashboard/transcode/number_text.h"
#include "services/dashboard/transcode/skip.h"

namespace tollgate::transcode {
namespace {

constexpr int64_t kNanos = 1'000'000'000;

std::optional<int64_t> TwoDigits(std::string_view text, size_t at, int64_t low, int64_t high) {
  if (at + 2 > text.size() || !IsDigit(text[at]) || !IsDigit(text[at + 1])) return std::nullopt;
  const int64_t value = (text[at] - '0') * 10 + (text[at + 1] - '0');
  return value < low || value > high ? std::nullopt : std::optional(value);
}

// Removes trailing groups of three zeros: 0, 3, 6 or 9 digits remain.
std::string Fraction(int32_t nanos) {
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%09d", nanos);
  std::string text = digits;
  for (int i = 0; i < 2 && text.ends_with("000"); ++i) text.resize(text.size() - 3);
  return text == ".000" ? "" : text;
}

}  // namespace

std::optional<SecondsNanos> ParseTimestamp(std::string_view text) {
  // 2006-01-02T15:04:05[.,digits](Z|±hh:mm)
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T') return std::nullopt;
  const auto century = TwoDigits(text, 0, 0, 99), year = TwoDigits(text, 2, 0, 99);
  const auto month = TwoDigits(text, 5, 1, 12), day = TwoDigits(text, 8, 1, 31);
  if (!century || !year || !month || !day) return std::nullopt;
  std::string_view rest = text.substr(11);
  // Go accepts an hour of one digit, too.
  std::string padded;
  if (rest.size() > 1 && IsDigit(rest[0]) && rest[1] == ':') {
    padded = "0" + std::string(rest);
    rest = padded;
  }
  if (rest.size() < 9 || rest[2] != ':' || rest[5] != ':') return std::nullopt;
  const auto hour = TwoDigits(rest, 0, 0, 23), minute = TwoDigits(rest, 3, 0, 59);
  const auto second = TwoDigits(rest, 6, 0, 59);
  if (!hour || !minute || !second) return std::nullopt;
  rest.remove_prefix(8);
  SecondsNanos out;
  if (rest.size() > 1 && (rest[0] == '.' || rest[0] == ',') && IsDigit(rest[1])) {
    rest.remove_prefix(1);
    int32_t scale = kNanos / 10;
    for (; !rest.empty() && IsDigit(rest[0]); rest.remove_prefix(1), scale /= 10) {
      out.nanos += (rest[0] - '0') * scale;
    }
  }
  int64_t offset = 0;
  if (rest != "Z") {
    if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':')
      return std::nullopt;
    const auto hours = TwoDigits(rest, 1, 0, 24), minutes = TwoDigits(rest, 4, 0, 60);
    if (!hours || !minutes) return std::nullopt;
    offset = (*hours * 60 + *minutes) * (rest[0] == '-' ? -60 : 60);
  }
  using std::chrono::day, std::chrono::month, std::chrono::year;
  const std::chrono::year_month_day date(
      std::chrono::year(static_cast<int>(*century * 100 + *year)),
      std::chrono::month(static_cast<unsigned>(*month)),
      std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  out.seconds = days * 86'400 + *hour * 3'600 + *minute * 60 + *second - offset;
  return out;
}

namespace {
constexpr int64_t kFirstSecond = -62'135'596'800;  // 0001-01-01T00:00:00Z
constexpr int64_t kLastSecond = 253'402'300'799;   // 9999-12-31T23:59:59Z
constexpr int64_t kLongestSeconds = 315'576'000'000;
}  // namespace

std::optional<SecondsNanos> ParseJsonTimestamp(std::string_view text) {
  const auto time = ParseTimestamp(text);
  if (!time || time->seconds < kFirstSecond || time->seconds > kLastSecond) return std::nullopt;
  const size_t point = text.rfind('.'), zone = text.find_last_of("Z-+");
  if (point != std::string_view::npos && zone != std::string_view::npos && zone >= point &&
      zone - point > 10) {
    return std::nullopt;
  }
  return time;
}

std::optional<SecondsNanos> ParseJsonDuration(std::string_view text) {
  if (text.size() < 2 || text.back() != 's') return std::nullopt;
  text.remove_suffix(1);
  const bool negative = text[0] == '-';
  Skip(text, "+-");
  if (text.empty()) return std::nullopt;
  SecondsNanos out;
  if (text[0] != '.' && !Skip(text, "0")) {
    const std::string_view from = text;
    if (!SkipDigits(text)) return std::nullopt;
    const auto seconds = ParseInteger<int64_t>(from.substr(0, from.size() - text.size()));
    if (!seconds || *seconds > kLongestSeconds) return std::nullopt;
    out.seconds = *seconds;
  }
  if (!text.empty()) {
    if (!Skip(text, ".") || text.size() > 9) return std::nullopt;
    int32_t scale = kNanos / 10;
    for (; !text.empty(); text.remove_prefix(1), scale /= 10) {
      if (!IsDigit(text[0])) return std::nullopt;
      out.nanos += (text[0] - '0') * scale;
    }
  }
  if (negative) out = {-out.seconds, -out.nanos};
  return out;
}

std::optional<std::string> TimestampText(SecondsNanos value) {
  if (value.seconds < kFirstSecond || value.seconds > kLastSecond) return std::nullopt;
  if (value.nanos < 0 || value.nanos >= kNanos) return std::nullopt;
  int64_t days = value.seconds / 86'400, rest = value.seconds % 86'400;
  if (rest < 0) {
    --days;
    rest += 86'400;
  }
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(rest / 3'600), static_cast<int>(rest / 60 % 60),
                static_cast<int>(rest % 60));
  return text + Fraction(value.nanos) + "Z";
}

std::optional<std::string> DurationText(SecondsNanos value) {
  if (std::abs(value.seconds) > kLongestSeconds || std::abs(value.nanos) >= kNanos)
    return std::nullopt;
  if ((value.seconds > 0 && value.nanos < 0) || (value.seconds < 0 && value.nanos > 0))
    return std::nullopt;
  const bool negative = value.seconds < 0 || value.nanos < 0;
  return (negative ? "-" : "") + std::to_string(std::abs(value.seconds)) +
         Fraction(std::abs(value.nanos)) + "s";
}

}  // namespace tollgate::transcode
