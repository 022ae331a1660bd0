#include "services/inference_router/balancer/retry_budget.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kBudgetNow = 1'000'000'000;

// Takes all retries that are available at one moment.
int TakeAll(RetryBudget& budget, int64_t now_us) {
  int taken = 0;
  while (budget.TryTake(now_us)) ++taken;
  return taken;
}

TEST(RetryBudget, AFifthOfTheRequestsMayBeRetried) {
  RetryBudget budget;
  TakeAll(budget, kBudgetNow);
  for (int i = 0; i < 100; ++i) budget.OnRequest();
  EXPECT_EQ(TakeAll(budget, kBudgetNow), 20);
}

TEST(RetryBudget, WhenAllRequestsFailAFifthIsRetried) {
  RetryBudget budget;
  int retried = 0;
  for (int i = 0; i < 10'000; ++i) {  // a thousand a second
    budget.OnRequest();
    retried += budget.TryTake(kBudgetNow + i * 1'000) ? 1 : 0;
  }
  EXPECT_GE(retried, 2'000);
  EXPECT_LE(retried, 2'000 + RetryBudget::kFirst + 11) << "one per second, and the initial ones";
}

TEST(RetryBudget, APoolWithFewRequestsMayRetryOnceASecond) {
  RetryBudget budget;
  TakeAll(budget, kBudgetNow);
  EXPECT_FALSE(budget.TryTake(kBudgetNow + 999'999));
  EXPECT_TRUE(budget.TryTake(kBudgetNow + 1'000'000));
  EXPECT_FALSE(budget.TryTake(kBudgetNow + 1'000'000));
}

TEST(RetryBudget, WhatQuietTimesSaveIsBounded) {
  RetryBudget budget;
  for (int i = 0; i < 100'000; ++i) budget.OnRequest();
  EXPECT_EQ(TakeAll(budget, kBudgetNow), RetryBudget::kMostSaved + 1);
}

}  // namespace
}  // namespace tollgate::inference_router
