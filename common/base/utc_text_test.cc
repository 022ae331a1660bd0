#include "common/base/utc_text.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
constexpr int64_t kFebruary2024 = 1'706'745'600 * kSecond;  // 2024-02-01

TEST(UtcText, DatesStartAtMidnightUtc) {
  EXPECT_EQ(ParseUtc("1970-01-01"), 0);
  EXPECT_EQ(ParseUtc("2024-02-01"), kFebruary2024);
  EXPECT_EQ(ParseUtc("1969-12-31"), -kDay);
}

TEST(UtcText, LeapYears) {
  EXPECT_EQ(ParseUtc("2024-02-29"), kFebruary2024 + 28 * kDay);
  EXPECT_EQ(ParseUtc("2024-03-01"), kFebruary2024 + 29 * kDay);
  EXPECT_TRUE(ParseUtc("2000-02-29"));
  EXPECT_FALSE(ParseUtc("2023-02-29"));
  EXPECT_FALSE(ParseUtc("1900-02-29"));
}

TEST(UtcText, TimesWithOffsets) {
  const int64_t half_past_eight = kFebruary2024 + (8 * 3600 + 30 * 60) * kSecond;
  for (const char* text : {"2024-02-01T08:30:00Z", "2024-02-01t08:30:00z",
                           "2024-02-01T09:30:00+01:00", "2024-02-01T03:00:00-05:30",
                           "2024-02-02T08:29:00+23:59", "2024-02-01T08:30:00.000000000Z"}) {
    EXPECT_EQ(ParseUtc(text), half_past_eight) << text;
  }
  EXPECT_EQ(ParseUtc("2024-02-01T08:30:00.25Z"), half_past_eight + 250'000);
}

TEST(UtcText, FinerThanAMicrosecondIsTheNextOne) {
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00.0000001Z"), 1);
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00.9999991Z"), kSecond);
}

TEST(UtcText, LeapSecondsStandAtTheEndOfADay) {
  EXPECT_EQ(ParseUtc("2016-12-31T23:59:60Z"), ParseUtc("2017-01-01"));
  EXPECT_EQ(ParseUtc("2017-01-01T00:59:60+01:00"), ParseUtc("2017-01-01"));
  EXPECT_FALSE(ParseUtc("2016-12-31T22:59:60Z"));
}

TEST(UtcText, NothingElseIsATime) {
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

TEST(UtcText, WritesWhatItReads) {
  for (const char* text : {"1970-01-01T00:00:00Z", "2024-02-29T23:59:59.000001Z",
                           "1969-12-31T23:59:59.999999Z", "9999-12-31T00:00:00Z"}) {
    EXPECT_EQ(UtcText(*ParseUtc(text)), text);
  }
  EXPECT_EQ(UtcDateText(0), "1970-01-01");
  EXPECT_EQ(UtcDateText(-1), "1969-12-31");
  EXPECT_EQ(UtcDateText(19782), "2024-02-29");
}

}  // namespace
}  // namespace tollgate
