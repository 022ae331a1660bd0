#include "common/base/utc_text.h"

#include <chrono>
#include <cstdio>

namespace tollgate {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kSecondsPerDay = 86'400;

int64_t FloorDiv(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

// Consumes the text from its front, as long as it matches.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  // One character of the set.
  bool OneOf(std::string_view set) {
    if (text_.empty() || set.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly this many digits whose value is between low and high.
  std::optional<int64_t> Number(size_t digits, int64_t low, int64_t high) {
    if (text_.size() < digits) return std::nullopt;
    int64_t value = 0;
    for (const char c : text_.substr(0, digits)) {
      if (c < '0' || c > '9') return std::nullopt;
      value = value * 10 + (c - '0');
    }
    if (value < low || value > high) return std::nullopt;
    text_.remove_prefix(digits);
    return value;
  }
  // The digits after the decimal point, in microseconds, rounded up.
  std::optional<int64_t> Fraction() {
    int64_t us = 0;
    bool more = false;
    size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      const int digit = text_[digits] - '0';
      if (digits < 6) us = us * 10 + digit;
      if (digits >= 6 && digit != 0) more = true;
    }
    if (digits == 0) return std::nullopt;
    for (size_t i = digits; i < 6; ++i) us *= 10;
    text_.remove_prefix(digits);
    return us + (more ? 1 : 0);
  }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

// Returns days since the epoch.
std::optional<int64_t> ReadDate(Reader& reader) {
  const auto year = reader.Number(4, 1, 9999);
  if (!year || !reader.OneOf("-")) return std::nullopt;
  const auto month = reader.Number(2, 1, 12);
  if (!month || !reader.OneOf("-")) return std::nullopt;
  const auto day = reader.Number(2, 1, 31);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// Returns how many seconds the written time is ahead of UTC.
std::optional<int64_t> ReadOffset(Reader& reader) {
  if (reader.OneOf("Zz")) return 0;
  const bool ahead = reader.OneOf("+");
  if (!ahead && !reader.OneOf("-")) return std::nullopt;
  const auto hours = reader.Number(2, 0, 23);
  if (!hours || !reader.OneOf(":")) return std::nullopt;
  const auto minutes = reader.Number(2, 0, 59);
  if (!minutes) return std::nullopt;
  const int64_t seconds = *hours * 3600 + *minutes * 60;
  return ahead ? seconds : -seconds;
}

}  // namespace

std::string UtcDateText(int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day}}};
  char text[32];
  std::snprintf(text, sizeof(text), "%04d-%02u-%02u", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
  return text;
}

std::string UtcMonthText(int32_t month) {
  char text[24];
  std::snprintf(text, sizeof(text), "%04d-%02d", month / 100, month % 100);
  return text;
}

std::string UtcText(int64_t wall_us, UtcPrecision precision) {
  const int64_t seconds = FloorDiv(wall_us, kUsPerSecond);
  const int64_t day = FloorDiv(seconds, kSecondsPerDay);
  const int rest = static_cast<int>(seconds - day * kSecondsPerDay);
  const int us = static_cast<int>(wall_us - seconds * kUsPerSecond);
  char text[32];
  std::snprintf(text, sizeof(text), "T%02d:%02d:%02d", rest / 3600, rest / 60 % 60, rest % 60);
  std::string out = UtcDateText(day) + text;
  if (precision == UtcPrecision::kMicroseconds ||
      (precision == UtcPrecision::kShortest && us != 0)) {
    std::snprintf(text, sizeof(text), ".%06d", us);
    out += text;
  }
  return out + "Z";
}

std::optional<int64_t> ParseUtc(std::string_view text) {
  Reader reader(text);
  const auto day = ReadDate(reader);
  if (!day) return std::nullopt;
  int64_t seconds = *day * kSecondsPerDay;
  if (reader.at_end()) return seconds * kUsPerSecond;
  if (!reader.OneOf("Tt")) return std::nullopt;
  const auto hour = reader.Number(2, 0, 23);
  if (!hour || !reader.OneOf(":")) return std::nullopt;
  const auto minute = reader.Number(2, 0, 59);
  if (!minute || !reader.OneOf(":")) return std::nullopt;
  const auto second = reader.Number(2, 0, 60);
  if (!second) return std::nullopt;
  int64_t us = 0;
  if (reader.OneOf(".")) {
    const auto fraction = reader.Fraction();
    if (!fraction) return std::nullopt;
    us = *fraction;
  }
  const auto offset = ReadOffset(reader);
  if (!offset || !reader.at_end()) return std::nullopt;
  seconds += *hour * 3600 + *minute * 60 + *second - *offset;
  // A leap second is valid only at the end of a UTC day. It counts as the next day's first second.
  if (*second == 60 && seconds % kSecondsPerDay != 0) return std::nullopt;
  return seconds * kUsPerSecond + us;
}

std::optional<int64_t> ParseUtcDate(std::string_view text) {
  return text.size() == 10 ? ParseUtc(text) : std::nullopt;
}

std::optional<int64_t> ParseUtcSecond(std::string_view text) {
  // This is the only form accepted by ParseUtc that has 20 characters.
  const bool right_form = text.size() == 20 && text[10] == 'T' && text[19] == 'Z';
  return right_form && text[17] != '6' ? ParseUtc(text) : std::nullopt;
}

}  // namespace tollgate
