#include "common/clients/limiter_stores.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

// Two limiters in memory behind one target would silently turn 300 a minute into 600.
TEST(LimiterStores, TwoThatAnswerInTurnAreReported) {
  LimiterStores stores;
  EXPECT_EQ(stores.Saw("memory:a", 0), 1);
  EXPECT_EQ(stores.Saw("memory:b", 1), 1);  // may be a restart
  EXPECT_EQ(stores.Saw("memory:a", 2), 2);
  EXPECT_EQ(stores.Saw("memory:a", 3), 2);
  EXPECT_EQ(stores.Saw("memory:b", 4), 2);
  EXPECT_EQ(stores.Saw("memory:c", 5), 3);
}

TEST(LimiterStores, RestartsAndASharedStoreAreRight) {
  LimiterStores stores;
  for (int restart = 0; restart < 20; ++restart) {
    for (int call = 0; call < 5; ++call) {
      EXPECT_EQ(stores.Saw("memory:" + std::to_string(restart), restart * kSecondUs + call), 1);
    }
  }
  for (int call = 0; call < 20; ++call) EXPECT_EQ(stores.Saw("redis:x", 30 * kSecondUs + call), 1);
}

TEST(LimiterStores, TheReportEndsWhenOneIsLeft) {
  LimiterStores stores;
  stores.Saw("memory:a", 0);
  stores.Saw("memory:b", 1);
  EXPECT_EQ(stores.Saw("memory:a", 2), 2);
  EXPECT_EQ(stores.Saw("memory:a", 200 * kSecondUs), 1);
}

}  // namespace
}  // namespace tollgate
