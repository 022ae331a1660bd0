#include "common/base/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tollgate {
namespace {

using Level = MemoryBudget::Level;

TEST(MemoryBudget, LevelsBeginAtTheirShares) {
  MemoryBudget budget(10'000);
  const std::pair<int64_t, Level> shares[] = {{0, Level::kNormal},
                                              {8'499, Level::kNormal},
                                              {8'500, Level::kNoLargeBodies},
                                              {8'999, Level::kNoLargeBodies},
                                              {9'000, Level::kNoRequests},
                                              {9'499, Level::kNoRequests},
                                              {9'500, Level::kCloseIdle},
                                              {20'000, Level::kCloseIdle}};
  for (const auto& [used, level] : shares) {
    budget.Take(used);
    EXPECT_EQ(budget.level(), level) << used;
    budget.Release(used);
  }
}

TEST(MemoryBudget, TryTakeNeverExceedsTheLimit) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.TryTake(60));
  EXPECT_FALSE(budget.TryTake(41));
  EXPECT_EQ(budget.used(), 60);
  EXPECT_TRUE(budget.TryTake(40));
  EXPECT_FALSE(budget.TryTake(1));
  budget.Take(1);
  EXPECT_EQ(budget.used(), 101);
}

TEST(MemoryReservation, ReturnsWhatItHolds) {
  MemoryBudget budget(1'000);
  {
    MemoryReservation body(&budget);
    EXPECT_TRUE(body.TryGrow(600));
    EXPECT_TRUE(body.TryGrow(500)) << "it is as large already";
    EXPECT_EQ(budget.used(), 600);
    EXPECT_FALSE(body.TryGrow(1'001));
    EXPECT_EQ(body.bytes(), 600);
    MemoryReservation output(&budget);
    output.Grow(500);
    EXPECT_EQ(budget.used(), 1'100);
    body.Shrink(200);
    EXPECT_EQ(budget.used(), 700);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryReservation, WithoutABudgetNothingIsCounted) {
  MemoryReservation body(nullptr);
  EXPECT_TRUE(body.TryGrow(INT64_MAX));
  body.Grow(1);
  EXPECT_EQ(body.bytes(), 0);
  body.Shrink(0);
}

TEST(MemoryBudget, ManyThreadsLoseNothing) {
  MemoryBudget budget(64 * 1024);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 20'000; ++i) {
        MemoryReservation body(&budget);
        if (body.TryGrow(i % 30'000)) EXPECT_LE(body.bytes(), budget.limit());
        body.Grow(i % 100);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace tollgate
