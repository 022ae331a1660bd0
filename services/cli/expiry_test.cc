#include "services/cli/expiry.h"

#include <gtest/gtest.h>

namespace tollgate::cli {
namespace {

TEST(Expiry, ParsesSpansDatesAndTimes) {
  constexpr int64_t kNow = 1'795'233'300'000'000;  // 2026-11-21T03:55:00Z
  EXPECT_EQ(ParseExpiry("never", kNow), 0);
  EXPECT_EQ(ParseExpiry("30d", kNow), kNow + int64_t{30} * 86'400'000'000);
  EXPECT_EQ(ParseExpiry("12h", kNow), kNow + int64_t{12} * 3'600'000'000);
  EXPECT_EQ(ParseExpiry("45m", kNow), kNow + int64_t{45} * 60'000'000);
  EXPECT_EQ(ParseExpiry("2026-11-22", kNow), 1'795'305'600'000'000);
  EXPECT_EQ(ParseExpiry("2026-11-21T03:55:01Z", kNow), kNow + 1'000'000);
}

TEST(Expiry, RefusesThePastAndOtherText) {
  constexpr int64_t kNow = 1'795'233'300'000'000;
  for (const char* text : {"", "30", "-3d", "0d", "3y", "d", "2020-01-01", "2027-02-30", "2027-1-1",
                           "2027-01-01T25:00:00Z", "2027-01-01T10:00:00", "2027-01-01T10:00:00Zx",
                           "99999999999999999d", "2026-11-21T03:55:00Z"}) {
    EXPECT_EQ(ParseExpiry(text, kNow), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tollgate::cli
