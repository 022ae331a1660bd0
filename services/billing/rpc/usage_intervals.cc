#include "services/billing/rpc/usage_intervals.h"

#include <absl/time/time.h>

#include <algorithm>

namespace tollgate::billing {
namespace {

constexpr int64_t kQuarterUs = 900LL * 1'000'000;

int64_t ToUs(absl::Time time) { return absl::ToUnixMicros(time); }

// Start of the hour or day that contains this time, and start of the next one.
std::pair<int64_t, int64_t> Around(int64_t us, Interval interval, const absl::TimeZone& zone) {
  const absl::Time time = absl::FromUnixMicros(us);
  if (interval == Interval::kDay) {
    const absl::CivilDay day = absl::ToCivilDay(time, zone);
    return {ToUs(absl::FromCivil(day, zone)), ToUs(absl::FromCivil(day + 1, zone))};
  }
  // Hours of local time, which may differ from those of UTC by 30 or 45 minutes. Computed from the
  // time itself, since a local hour may occur twice.
  const int64_t length = interval == Interval::kHour ? 4 * kQuarterUs : kQuarterUs;
  const int64_t offset = int64_t{zone.At(time).offset} * 1'000'000;
  const int64_t local = us + offset;
  const int64_t begin = local - ((local % length) + length) % length - offset;
  return {begin, begin + length};
}

}  // namespace

bool IsUtc(const std::string& time_zone) { return time_zone.empty() || time_zone == "UTC"; }

admin::AdminResult<std::vector<int64_t>> IntervalBounds(int64_t start_us, int64_t end_us,
                                                        Interval interval,
                                                        const std::string& time_zone) {
  absl::TimeZone zone = absl::UTCTimeZone();
  // Limited, because the name is used as a file path.
  const bool is_name = time_zone.size() <= 64 && time_zone.find("..") == std::string::npos &&
                       !time_zone.starts_with('/') && !time_zone.starts_with("file:");
  if (!IsUtc(time_zone) && (!is_name || !absl::LoadTimeZone(time_zone, &zone))) {
    return admin::InvalidField("time_zone", "\"" + time_zone +
                                                "\" is not a time zone such as Europe/Berlin, or "
                                                "the time zones are not installed (tzdata)");
  }
  std::vector<int64_t> bounds = {start_us};
  if (interval != Interval::kNone) {
    int64_t next = Around(start_us, interval, zone).second;
    while (next < end_us) {
      bounds.push_back(next);
      next = std::max(Around(next, interval, zone).second, next + 1);
    }
  }
  bounds.push_back(end_us);
  return bounds;
}

}  // namespace tollgate::billing
