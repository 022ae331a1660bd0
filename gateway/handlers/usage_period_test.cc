// See decision 29.
#include "gateway/handlers/usage_period.h"

#include <gtest/gtest.h>

#include "common/base/utc_text.h"

namespace tollgate::gateway {
namespace {

constexpr char kNow[] = "2024-03-31T12:34:56.789012Z";

// Returns "start..end" with "now" for an open end, or "400 param".
std::string ParseToText(std::string_view query, const char* now = kNow) {
  const auto period = ParseUsageQuery(query, *ParseUtc(now));
  if (!period) {
    EXPECT_EQ(period.error().id, ErrorId::kBadRequest);
    EXPECT_NE(period.error().message, "");
    return "400 " + period.error().param;
  }
  EXPECT_TRUE(!period->until_now || period->end_us == *ParseUtc(now));
  return UtcText(period->start_us) + ".." + (period->until_now ? "now" : UtcText(period->end_us));
}

TEST(UsagePeriod, TheDefaultIsThisMonth) {
  EXPECT_EQ(ParseToText(""), "2024-03-01T00:00:00Z..now");
  EXPECT_EQ(ParseToText("range=month"), "2024-03-01T00:00:00Z..now");
  EXPECT_EQ(ParseToText("range=month", "2024-03-01T00:00:00.000001Z"), "2024-03-01T00:00:00Z..now");
  EXPECT_EQ(ParseToText("range=month", "2024-02-29T23:59:59.999999Z"), "2024-02-01T00:00:00Z..now");
}

TEST(UsagePeriod, RangesCountBackToTheMicrosecond) {
  EXPECT_EQ(ParseToText("range=24h"), "2024-03-30T12:34:56.789012Z..now");
  // Daylight saving time has no effect.
  EXPECT_EQ(ParseToText("range=7d"), "2024-03-24T12:34:56.789012Z..now");
  EXPECT_EQ(ParseToText("range=30d"), "2024-03-01T12:34:56.789012Z..now");
  EXPECT_EQ(ParseToText("range=24h", "2024-03-01T00:00:00Z"), "2024-02-29T00:00:00Z..now");
  EXPECT_EQ(ParseToText("range=24h", "2023-03-01T00:00:00Z"), "2023-02-28T00:00:00Z..now");
}

TEST(UsagePeriod, UnknownRangesAreRefused) {
  for (const char* query : {"range=1h", "range=", "range", "range=24H", "range=month%20",
                            "range=24h,7d", "range=%00", "range=all"}) {
    EXPECT_EQ(ParseToText(query), "400 range") << query;
  }
}

TEST(UsagePeriod, StartAndEnd) {
  EXPECT_EQ(ParseToText("start=2024-02-28&end=2024-03-01"),
            "2024-02-28T00:00:00Z..2024-03-01T00:00:00Z");
  EXPECT_EQ(ParseToText("end=2024-03-01T10:00:00Z&start=2024-03-01T11:00:00%2B02:00"),
            "2024-03-01T09:00:00Z..2024-03-01T10:00:00Z");
  EXPECT_EQ(ParseToText("start=2024-03-01T11:00:00+02:00&end=2024-03-01T10:00:00Z"),
            "2024-03-01T09:00:00Z..2024-03-01T10:00:00Z");
  EXPECT_EQ(ParseToText("start=2024-03-31"), "2024-03-31T00:00:00Z..now");
  EXPECT_EQ(ParseToText("end=2024-03-01"), "2024-02-01T00:00:00Z..2024-03-01T00:00:00Z");
  EXPECT_EQ(ParseToText("end=2024-03-02"), "2024-03-01T00:00:00Z..2024-03-02T00:00:00Z");
  EXPECT_EQ(ParseToText("start=2024-03-31&end=2030-01-01"), "400 start");
  EXPECT_EQ(ParseToText("start=2024-03-31&end=2024-05-01"),
            "2024-03-31T00:00:00Z..2024-05-01T00:00:00Z");
}

TEST(UsagePeriod, AtMost366Days) {
  EXPECT_EQ(ParseToText("start=2024-01-01&end=2025-01-01"),
            "2024-01-01T00:00:00Z..2025-01-01T00:00:00Z");
  EXPECT_EQ(ParseToText("start=2023-01-01&end=2024-01-02"),
            "2023-01-01T00:00:00Z..2024-01-02T00:00:00Z");
  EXPECT_EQ(ParseToText("start=2024-01-01&end=2025-01-01T00:00:00.000001Z"), "400 start");
  EXPECT_EQ(ParseToText("start=2023-01-01"), "400 start");
}

TEST(UsagePeriod, EmptyAndBackwardPeriodsAreRefused) {
  EXPECT_EQ(ParseToText("start=2024-03-01&end=2024-03-01"), "400 end");
  EXPECT_EQ(ParseToText("start=2024-03-02&end=2024-03-01"), "400 end");
  EXPECT_EQ(ParseToText("start=2024-04-01"), "400 start");
  EXPECT_EQ(ParseToText("start=2024-03-31T12:34:56.789012Z"), "400 start");
}

TEST(UsagePeriod, InvalidTimesAreRefusedByName) {
  for (const char* value : {"", "yesterday", "2023-02-29", "1711888496", "2024-03-01T10:00",
                            "2024-03-01%2010:00:00Z", "2024-3-1"}) {
    EXPECT_EQ(ParseToText(std::string("start=") + value), "400 start") << value;
    EXPECT_EQ(ParseToText(std::string("end=") + value), "400 end") << value;
  }
  EXPECT_EQ(ParseToText("start"), "400 start");
}

TEST(UsagePeriod, RangeExcludesStartAndEnd) {
  EXPECT_EQ(ParseToText("range=7d&start=2024-03-30"), "400 range");
  EXPECT_EQ(ParseToText("end=2024-03-30&range=month"), "400 range");
}

TEST(UsagePeriod, RepeatedParametersAreRefused) {
  EXPECT_EQ(ParseToText("range=7d&range=7d"), "400 range");
  EXPECT_EQ(ParseToText("start=2024-03-30&%73tart=2024-03-30"), "400 start");
}

TEST(UsagePeriod, OtherParametersAreIgnored) {
  for (const char* query : {"&", "&&", "beta=true", "Range=24h", "x=%zz", "%zz=1", "range%20=1",
                            "=24h", "ranges=1&starting=2&ende=3", "a[b]=c"}) {
    EXPECT_EQ(ParseToText(query), "2024-03-01T00:00:00Z..now") << query;
  }
  EXPECT_EQ(ParseToText("beta=true&range=24h&x"), "2024-03-30T12:34:56.789012Z..now");
}

TEST(UsagePeriod, PercentEncoding) {
  EXPECT_EQ(ParseToText("r%61nge=%32%34%68"), "2024-03-30T12:34:56.789012Z..now");
  for (const char* query : {"range=24h%", "range=24h%4", "range=%zz", "range=%2"}) {
    EXPECT_EQ(ParseToText(query), "400 range") << query;
  }
}

TEST(UsagePeriod, TheLimitsOfTheCalendar) {
  EXPECT_EQ(ParseToText("start=0001-01-01&end=0001-01-02"),
            "0001-01-01T00:00:00Z..0001-01-02T00:00:00Z");
  EXPECT_EQ(ParseToText("end=0001-01-01"), "0000-12-01T00:00:00Z..0001-01-01T00:00:00Z");
  EXPECT_EQ(ParseToText("start=9999-12-31T23:59:59-23:59&end=9999-12-31"), "400 end");
}

}  // namespace
}  // namespace tollgate::gateway
