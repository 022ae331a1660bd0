#include "gateway/handlers/usage_period.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "gateway/handlers/query.h"

namespace tollgate::gateway {

namespace {

constexpr int64_t kMaxPeriodUs = 366 * kDayUs;
constexpr std::string_view kTimeHelp = " must be an RFC 3339 time or YYYY-MM-DD.";

std::optional<int64_t> StartOfRange(std::string_view range, int64_t now_us) {
  if (range == "24h") return now_us - 24 * kHourUs;
  if (range == "7d") return now_us - 7 * kDayUs;
  if (range == "30d") return now_us - 30 * kDayUs;
  if (range == "month") return UtcMonthStartUs(UtcMonth(now_us));
  return std::nullopt;
}

}  // namespace

Result<UsagePeriod> ParseUsageQuery(std::string_view query, int64_t now_us) {
  std::array<QueryParameter, 3> parameters = {{{"range"}, {"start"}, {"end"}}};
  TRY(ReadQuery(query, parameters));
  const auto& [range, start, end] = parameters;
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
  // The month of the period's last microsecond: the end is exclusive, so an end on the first of a
  // month belongs to the month before.
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
