#include "gateway/worker/refusal_budget.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

TEST(RefusalBudget, ABurstAndThenOneASecond) {
  RefusalBudget budget;
  int64_t now_us = 5 * kSecondUs;
  for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) {
    EXPECT_EQ(budget.WaitMs("a", now_us), 0) << i;
    budget.Take("a", now_us);
  }
  EXPECT_EQ(budget.WaitMs("a", now_us), 1000);
  EXPECT_EQ(budget.WaitMs("b", now_us), 0) << "another key";
  now_us += kSecondUs;
  EXPECT_EQ(budget.WaitMs("a", now_us), 0);
  budget.Take("a", now_us);
  EXPECT_EQ(budget.WaitMs("a", now_us), 1000);
}

TEST(RefusalBudget, APaidAnswerMakesUpForARefusal) {
  RefusalBudget budget;
  for (int64_t i = 0; i < 10 * RefusalBudget::kBurst; ++i) {
    EXPECT_EQ(budget.WaitMs("a", 0), 0) << "a refusal for each paid answer";
    budget.Take("a", 0);
    budget.GiveBack("a");
  }
  for (int64_t i = 0; i < 100; ++i) budget.GiveBack("a");
  for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) budget.Take("a", 200 * kSecondUs);
  EXPECT_GT(budget.WaitMs("a", 200 * kSecondUs), 0) << "nothing is saved up";
}

TEST(RefusalBudget, WhatRanAtTheSameTimeStopsAKeyForTwoMinutesAtMost) {
  RefusalBudget budget;
  for (int i = 0; i < 10'000; ++i) budget.Take("a", 0);
  EXPECT_LE(budget.WaitMs("a", 0), (RefusalBudget::kBurst + 1) * 1000);
  EXPECT_EQ(budget.WaitMs("a", 2 * RefusalBudget::kBurst * kSecondUs), 0);
}

}  // namespace
}  // namespace tollgate::gateway
