// A jump of a clock moves the ledger's time only slowly and is detected (docs/design/ledger.md 7).
#include "services/billing/commit/ledger_clock.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate::billing {
namespace {

struct LedgerClockTest : ::testing::Test {
  ManualClock clock;
  LedgerClock ledger{clock};
  const int64_t start_us = clock.WallUs();

  // Like the running ledger, which reads its clock at least once a second.
  void Pass(int64_t us) {
    for (int64_t passed = 0; passed < us; passed += kSecondUs) {
      clock.Advance(std::min(kSecondUs, us - passed));
      last_us = ledger.NowUs();
    }
  }
  int64_t last_us = 0;
};

TEST_F(LedgerClockTest, RunsWithTheWallClock) {
  EXPECT_EQ(ledger.NowUs(), start_us);
  Pass(kHourUs);
  EXPECT_EQ(last_us, start_us + kHourUs);
  EXPECT_EQ(ledger.ahead().process_us, 0);
  EXPECT_FALSE(ledger.ahead().database_us.has_value());
}

TEST_F(LedgerClockTest, AStepForwardMovesItByAtMostATwentiethOfTheTimeThatPasses) {
  EXPECT_EQ(ledger.NowUs(), start_us);
  clock.StepWall(kHourUs);
  EXPECT_EQ(ledger.NowUs(), start_us) << "does not jump";
  EXPECT_EQ(ledger.ahead().process_us, kHourUs);
  Pass(60 * kSecondUs);
  EXPECT_EQ(last_us, start_us + 63 * kSecondUs);
  // After the repair it returns to the right time.
  clock.StepWall(-kHourUs);
  Pass(60 * kSecondUs);
  EXPECT_EQ(last_us, start_us + 120 * kSecondUs);
  EXPECT_EQ(ledger.ahead().process_us, 0);
}

TEST_F(LedgerClockTest, AStepBackNeverStopsIt) {
  EXPECT_EQ(ledger.NowUs(), start_us);
  clock.StepWall(-kHourUs);
  EXPECT_EQ(ledger.NowUs(), start_us);
  EXPECT_EQ(ledger.ahead().process_us, -kHourUs);
  Pass(60 * kSecondUs);
  EXPECT_EQ(last_us, start_us + 57 * kSecondUs);
  Pass(21 * kHourUs);
  EXPECT_EQ(last_us, clock.WallUs()) << "has followed in the end";
}

TEST_F(LedgerClockTest, ManyStepsDoNotAddUp) {
  EXPECT_EQ(ledger.NowUs(), start_us);
  for (int i = 0; i < 1000; ++i) {
    clock.StepWall(kHourUs);
    EXPECT_EQ(ledger.NowUs(), start_us);
  }
}

TEST_F(LedgerClockTest, TheDatabasesClockIsTheReference) {
  EXPECT_EQ(ledger.NowUs(), start_us);
  const int64_t asked_us = clock.MonotonicUs() - 2000;
  ledger.OnDatabaseTime(start_us + 7 * kSecondUs, asked_us, clock.MonotonicUs());
  EXPECT_EQ(ledger.NowUs(), start_us + 7 * kSecondUs + 1000) << "read halfway";
  clock.StepWall(kHourUs);
  Pass(60 * kSecondUs);
  EXPECT_EQ(last_us, start_us + 67 * kSecondUs + 1000) << "the process's wall clock is not used";
  EXPECT_EQ(ledger.ahead().process_us, kHourUs - 7 * kSecondUs - 1000);
  EXPECT_EQ(ledger.ahead().database_us, 0);
}

TEST_F(LedgerClockTest, AStepOfTheDatabasesClockIsFollowedSlowly) {
  const auto read = [&](int64_t ahead_us, int64_t took_us = 0) {
    ledger.OnDatabaseTime(start_us + clock.MonotonicUs() - 1'000'000'000 + ahead_us,
                          clock.MonotonicUs() - took_us, clock.MonotonicUs());
  };
  read(0);
  Pass(10 * kSecondUs);
  read(kHourUs);
  EXPECT_EQ(ledger.NowUs(), start_us + 10 * kSecondUs);
  EXPECT_EQ(ledger.ahead().database_us, kHourUs);
  Pass(20 * kSecondUs);
  EXPECT_EQ(last_us, start_us + 31 * kSecondUs);
  read(0, kSecondUs);
  EXPECT_NE(ledger.ahead().database_us, 0) << "an answer after a second is too inaccurate";
}

}  // namespace
}  // namespace tollgate::billing
