#include "gateway/worker/refusal_budget.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tollgate::gateway {
namespace {

class RefusalBudgetTest : public ::testing::Test {
 protected:
  RefusalBudget budget_;
  const RefusalBudget::Subject a_ = RefusalBudget::SubjectOf("a");
  const RefusalBudget::Subject b_ = RefusalBudget::SubjectOf("b");
};

TEST_F(RefusalBudgetTest, ABurstAndThenOneASecond) {
  int64_t now_us = 5 * kSecondUs;
  for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) {
    EXPECT_EQ(budget_.WaitMs(a_, now_us), 0) << i;
    budget_.Take(a_, now_us);
  }
  EXPECT_EQ(budget_.WaitMs(a_, now_us), 1000);
  EXPECT_EQ(budget_.WaitMs(b_, now_us), 0) << "another key";
  now_us += kSecondUs;
  EXPECT_EQ(budget_.WaitMs(a_, now_us), 0);
  budget_.Take(a_, now_us);
  EXPECT_EQ(budget_.WaitMs(a_, now_us), 1000);
}

TEST_F(RefusalBudgetTest, APaidAnswerMakesUpForARefusal) {
  for (int64_t i = 0; i < 10 * RefusalBudget::kBurst; ++i) {
    EXPECT_EQ(budget_.WaitMs(a_, 0), 0) << "a refusal for each paid answer";
    budget_.Take(a_, 0);
    budget_.GiveBack(a_, 0);
  }
  for (int64_t i = 0; i < 100; ++i) budget_.GiveBack(a_, 0);
  for (int64_t i = 0; i <= RefusalBudget::kBurst; ++i) budget_.Take(a_, 0);
  EXPECT_GT(budget_.WaitMs(a_, 0), 0) << "nothing is saved up";
}

TEST_F(RefusalBudgetTest, WhatRanAtTheSameTimeStopsAKeyForTwoMinutesAtMost) {
  for (int i = 0; i < 10'000; ++i) budget_.Take(a_, 0);
  EXPECT_LE(budget_.WaitMs(a_, 0), (RefusalBudget::kBurst + 1) * 1000);
  EXPECT_EQ(budget_.WaitMs(a_, 2 * RefusalBudget::kBurst * kSecondUs), 0);
}

TEST_F(RefusalBudgetTest, AModelsRefusalsAreOfThatModelOnly) {
  for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) {
    budget_.Take(RefusalBudget::SubjectOf("a", "m"), 0);
  }
  EXPECT_GT(budget_.WaitMs(RefusalBudget::SubjectOf("a", "m"), 0), 0);
  EXPECT_EQ(budget_.WaitMs(RefusalBudget::SubjectOf("a", "n"), 0), 0);
  EXPECT_EQ(budget_.WaitMs(RefusalBudget::SubjectOf("b", "m"), 0), 0);
  EXPECT_EQ(budget_.WaitMs(a_, 0), 0);
}

// A few thousand keys that are refused all the time must not block another key.
TEST_F(RefusalBudgetTest, ManyKeysDoNotStopAnother) {
  for (int key = 0; key < 2'000; ++key) {
    const auto subject = RefusalBudget::SubjectOf("key" + std::to_string(key));
    for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) budget_.Take(subject, 0);
    EXPECT_GT(budget_.WaitMs(subject, 0), 0) << key;
  }
  int stopped = 0;
  for (int key = 0; key < 2'000; ++key) {
    stopped += budget_.WaitMs(RefusalBudget::SubjectOf("other" + std::to_string(key)), 0) > 0;
  }
  EXPECT_LE(stopped, 8) << "about 0.02 % share all four cells";
}

TEST_F(RefusalBudgetTest, LoopsShareIt) {
  std::vector<std::thread> loops;
  for (int loop = 0; loop < 4; ++loop) {
    loops.emplace_back([this] {
      for (int64_t i = 0; i < RefusalBudget::kBurst; ++i) budget_.Take(a_, 0);
    });
  }
  for (std::thread& loop : loops) loop.join();
  EXPECT_GT(budget_.WaitMs(a_, 0), 0);
}

}  // namespace
}  // namespace tollgate::gateway
