#include "services/billing/rpc/usage_intervals.h"

#include <gtest/gtest.h>

#include "common/base/utc_text.h"

namespace tollgate::billing {
namespace {

std::vector<std::string> Bounds(const char* start, const char* end, Interval interval,
                                const std::string& zone = "") {
  auto bounds = IntervalBounds(*ParseUtc(start), *ParseUtc(end), interval, zone);
  EXPECT_TRUE(bounds.ok());
  std::vector<std::string> texts;
  if (!bounds.ok()) return texts;
  for (const int64_t us : *bounds) texts.push_back(UtcText(us));
  return texts;
}
using Texts = std::vector<std::string>;

TEST(UsageIntervalsTest, TheFirstAndTheLastIntervalAreCut) {
  EXPECT_EQ(Bounds("2026-11-01T10:40:00Z", "2026-11-01T12:10:00Z", Interval::kHour),
            (Texts{"2026-11-01T10:40:00Z", "2026-11-01T11:00:00Z", "2026-11-01T12:00:00Z",
                   "2026-11-01T12:10:00Z"}));
  EXPECT_EQ(Bounds("2026-11-01", "2026-11-03", Interval::kDay),
            (Texts{"2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z"}));
  EXPECT_EQ(Bounds("2026-11-01", "2026-11-03", Interval::kNone).size(), 2U);
  EXPECT_EQ(Bounds("2026-11-01", "2026-11-02", Interval::kQuarterHour).size(), 97U);
}

// Days with 23 and 25 hours, and a time zone with a 45-minute offset.
TEST(UsageIntervalsTest, DaysAndHoursAreThoseOfTheTimeZone) {
  EXPECT_EQ(Bounds("2026-10-24T22:00:00Z", "2026-10-26T23:00:00Z", Interval::kDay, "Europe/Berlin"),
            (Texts{"2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"}));
  EXPECT_EQ(Bounds("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", Interval::kHour, "Europe/Berlin")
                .size(),
            26U);
  EXPECT_EQ(Bounds("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", Interval::kHour, "Europe/Berlin")
                .size(),
            24U);
  EXPECT_EQ(
      Bounds("2026-11-01T00:00:00Z", "2026-11-01T01:30:00Z", Interval::kHour, "Asia/Kathmandu"),
      (Texts{"2026-11-01T00:00:00Z", "2026-11-01T00:15:00Z", "2026-11-01T01:15:00Z",
             "2026-11-01T01:30:00Z"}));
}

TEST(UsageIntervalsTest, AnUnknownTimeZoneIsRefused) {
  for (const char* zone : {"Mars/Base", "../../etc/passwd", "/etc/localtime", "file:/etc/passwd"}) {
    const auto bounds = IntervalBounds(0, 1, Interval::kDay, zone);
    ASSERT_FALSE(bounds.ok()) << zone;
    EXPECT_EQ(bounds.error().field, "time_zone");
  }
}

}  // namespace
}  // namespace tollgate::billing
