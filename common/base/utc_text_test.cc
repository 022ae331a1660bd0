#include "common/base/utc_text.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

constexpr int64_t kDay = 86'400 * kSecondUs;
constexpr int64_t kFebruary2024 = 1'706'745'600 * kSecondUs;  // 2024-02-01

TEST(ParseUtc, DatesStartAtMidnightUtc) {
  EXPECT_EQ(ParseUtc("1970-01-01"), 0);
  EXPECT_EQ(ParseUtc("2024-02-01"), kFebruary2024);
  EXPECT_EQ(ParseUtc("1969-12-31"), -kDay);
}

TEST(ParseUtc, LeapYears) {
  EXPECT_EQ(ParseUtc("2024-02-29"), kFebruary2024 + 28 * kDay);
  EXPECT_EQ(ParseUtc("2024-03-01"), kFebruary2024 + 29 * kDay);
  EXPECT_TRUE(ParseUtc("2000-02-29"));
  EXPECT_FALSE(ParseUtc("2023-02-29"));
  EXPECT_FALSE(ParseUtc("1900-02-29"));
}

TEST(ParseUtc, TimesWithOffsets) {
  const int64_t half_past_eight = kFebruary2024 + (8 * 3600 + 30 * 60) * kSecondUs;
  for (const char* text : {"2024-02-01T08:30:00Z", "2024-02-01t08:30:00z",
                           "2024-02-01T09:30:00+01:00", "2024-02-01T03:00:00-05:30",
                           "2024-02-02T08:29:00+23:59", "2024-02-01T08:30:00.000000000Z"}) {
    EXPECT_EQ(ParseUtc(text), half_past_eight) << text;
  }
  EXPECT_EQ(ParseUtc("2024-02-01T08:30:00.25Z"), half_past_eight + 250'000);
}

TEST(ParseUtc, RoundsFinerFractionsUp) {
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00.0000001Z"), 1);
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00.9999991Z"), kSecondUs);
}

TEST(ParseUtc, AcceptsLeapSecondsOnlyAtTheEndOfADay) {
  EXPECT_EQ(ParseUtc("2016-12-31T23:59:60Z"), ParseUtc("2017-01-01"));
  EXPECT_EQ(ParseUtc("2017-01-01T00:59:60+01:00"), ParseUtc("2017-01-01"));
  EXPECT_FALSE(ParseUtc("2016-12-31T22:59:60Z"));
}

TEST(ParseUtc, RejectsEverythingElse) {
  for (const char* text : {"",
                           "2024",
                           "2024-02",
                           "2024-2-1",
                           "24-02-01",
                           "2024-13-01",
                           "2024-00-01",
                           "2024-04-31",
                           "2024-02-01 ",
                           " 2024-02-01",
                           "+2024-02-01",
                           "2024-02-01T",
                           "2024-02-01T08:30Z",
                           "2024-02-01T08:30:00",
                           "2024-02-01 08:30:00Z",
                           "2024-02-01T24:00:00Z",
                           "2024-02-01T08:60:00Z",
                           "2024-02-01T08:30:61Z",
                           "2024-02-01T08:30:00.Z",
                           "2024-02-01T08:30:00+0100",
                           "2024-02-01T08:30:00+24:00",
                           "2024-02-01T08:30:00ZZ",
                           "2024-02-01Z",
                           "20240201",
                           "1706745600",
                           "2024-02-0١"}) {
    EXPECT_FALSE(ParseUtc(text)) << text;
  }
}

TEST(UtcText, FormatsRoundTrip) {
  for (const char* text : {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59.000001Z",
                           "1969-12-31T23:59:59.999999Z", "9999-12-31T00:00:00Z"}) {
    EXPECT_EQ(UtcText(*ParseUtc(text)), text);
  }
  EXPECT_EQ(UtcDateText(0), "1970-01-01");
  EXPECT_EQ(UtcDateText(-1), "1969-12-31");
  EXPECT_EQ(UtcDateText(19782), "2024-02-29");
}

TEST(UtcText, HasTheGivenPrecision) {
  const int64_t whole_us = 1'795'233'300'000'000;  // 2026-11-21T03:55:00Z
  EXPECT_EQ(UtcText(whole_us, UtcPrecision::kSeconds), "2026-11-21T03:55:00Z");
  EXPECT_EQ(UtcText(whole_us + 999'999, UtcPrecision::kSeconds), "2026-11-21T03:55:00Z");
  EXPECT_EQ(UtcText(whole_us, UtcPrecision::kMicroseconds), "2026-11-21T03:55:00.000000Z");
  EXPECT_EQ(UtcText(whole_us + 123, UtcPrecision::kMicroseconds), "2026-11-21T03:55:00.000123Z");
  EXPECT_EQ(UtcMonthText(202601), "2026-01");
}

TEST(ParseUtcDate, AcceptsOnlyDates) {
  EXPECT_EQ(ParseUtcDate("2024-02-01"), kFebruary2024);
  for (const char* text : {"", "2024-02-30", "2024-2-1", "2024-02-01T00:00:00Z", "2024-02-01 "}) {
    EXPECT_FALSE(ParseUtcDate(text)) << text;
  }
}

TEST(ParseUtcSecond, AcceptsOnlyOneForm) {
  EXPECT_EQ(ParseUtcSecond("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(UtcText(*ParseUtcSecond("2028-02-29T23:59:59Z"), UtcPrecision::kSeconds),
            "2028-02-29T23:59:59Z");
  for (const char* text :
       {"", "2027-02-29T00:00:00Z", "2027-01-01", "2027-01-01T00:00:00", "2027-01-01T24:00:00Z",
        "2027-01-01T00:60:00Z", "2027-01-01T00:00:00+01:00", "2027-01-01t00:00:00z",
        "2027-13-01T00:00:00Z", "2027-01-01T00:00:00.5Z", "2016-12-31T23:59:60Z",
        " 2027-01-01T00:00:0Z"}) {
    EXPECT_FALSE(ParseUtcSecond(text)) << text;
  }
}

}  // namespace
}  // namespace tollgate
