#include "gateway/handlers/usage_period.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "common/base/ascii.h"
#include "common/base/clock.h"
#include "common/base/utc_text.h"

namespace tollgate::gateway {

namespace {

constexpr int64_t kHourUs = 3'600'000'000;
constexpr int64_t kDayUs = 24 * kHourUs;
constexpr int64_t kMaxPeriodUs = 366 * kDayUs;
constexpr std::string_view kTimeHelp = " must be an RFC 3339 time or YYYY-MM-DD.";

// Empty for a malformed escape.
std::optional<std::string> PercentDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

struct Parameter {
  std::string_view name;
  std::optional<std::string> value = {};
};
using Parameters = std::array<Parameter, 3>;

Result<Parameters> ReadParameters(std::string_view query) {
  Parameters found = {{{"range"}, {"start"}, {"end"}}};
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const size_t equals = pair.find('=');
    const auto name = PercentDecode(pair.substr(0, equals));
    for (Parameter& parameter : found) {
      if (name != parameter.name) continue;
      if (parameter.value) return BadRequest(*name + " is given more than once.", *name);
      parameter.value =
          PercentDecode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
      if (!parameter.value) return BadRequest(*name + " is not percent-encoded correctly.", *name);
    }
  }
  return found;
}

std::optional<int64_t> StartOfRange(std::string_view range, int64_t now_us) {
  if (range == "24h") return now_us - 24 * kHourUs;
  if (range == "7d") return now_us - 7 * kDayUs;
  if (range == "30d") return now_us - 30 * kDayUs;
  if (range == "month") return UtcMonthStartUs(UtcMonth(now_us));
  return std::nullopt;
}

}  // namespace

Result<UsagePeriod> ParseUsageQuery(std::string_view query, int64_t now_us) {
  const auto parameters = ReadParameters(query);
  if (!parameters) return Fail{parameters.error()};
  const auto& [range, start, end] = *parameters;
  UsagePeriod period{.end_us = now_us, .until_now = !end.value};
  if (!start.value && !end.value) {
    const auto from = StartOfRange(range.value.value_or("month"), now_us);
    if (!from) return BadRequest("range must be one of 24h, 7d, 30d and month.", "range");
    period.start_us = *from;
    return period;
  }
  if (range.value) return BadRequest("range cannot be combined with start or end.", "range");
  if (end.value) {
    const auto until = ParseUtc(*end.value);
    if (!until) return BadRequest("end" + std::string(kTimeHelp), "end");
    period.end_us = *until;
  }
  // The month of the period's last microsecond: an end at the first of a month is exclusive and
  // belongs to the month before.
  period.start_us = UtcMonthStartUs(UtcMonth(period.end_us - 1));
  if (start.value) {
    const auto from = ParseUtc(*start.value);
    if (!from) return BadRequest("start" + std::string(kTimeHelp), "start");
    period.start_us = *from;
  }
  if (period.start_us >= period.end_us) {
    return end.value ? BadRequest("end must be later than start.", "end")
                     : BadRequest("start must be in the past.", "start");
  }
  if (period.end_us - period.start_us > kMaxPeriodUs) {
    return BadRequest("The period must not be longer than 366 days.",
                      start.value ? "start" : "end");
  }
  return period;
}

}  // namespace tollgate::gateway
