#include "services/ratelimit/domain/gcra.h"

#include <gtest/gtest.h>

#include <random>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStart = 1000 * kSecond;

TEST(Gcra, ABurstAdmitsExactlyTheLimit) {
  for (const int64_t limit : {1, 2, 3, 7, 60, 61, 997, 10'000, 123'457}) {
    Bucket bucket;
    const int64_t cost = CostNs(1, limit);
    int64_t admitted = 0;
    while (bucket.WaitNs(cost, kStart) == 0) {
      bucket.Charge(cost, kStart);
      ++admitted;
    }
    EXPECT_EQ(admitted, limit);
    EXPECT_EQ(bucket.Remaining(limit, kStart), 0);
  }
}

TEST(Gcra, TheWaitIsExact) {
  Bucket bucket;
  const int64_t cost = CostNs(1, 60);
  EXPECT_EQ(cost, kSecond);
  for (int i = 0; i < 60; ++i) bucket.Charge(cost, kStart);
  const int64_t wait = bucket.WaitNs(cost, kStart);
  EXPECT_EQ(wait, kSecond);
  EXPECT_GT(bucket.WaitNs(cost, kStart + wait - 1), 0);
  EXPECT_EQ(bucket.WaitNs(cost, kStart + wait), 0);
}

// Exactly `remaining` units are admitted now, and one more is refused.
TEST(Gcra, RemainingUnitsAreAdmitted) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const int64_t limit = 1 + static_cast<int64_t>(random() % 1'000'000);
    Bucket bucket;
    bucket.Charge(static_cast<int64_t>(random() % (kWindowNs + 1)), kStart);
    const int64_t remaining = bucket.Remaining(limit, kStart);
    EXPECT_EQ(bucket.WaitNs(CostNs(remaining, limit), kStart), 0);
    if (remaining < limit) {
      // One more unit does not fit, apart from the nanosecond by which the cost is rounded down.
      EXPECT_GE(CostNs(remaining + 1, limit) + bucket.ResetNs(kStart), kWindowNs);
    }
  }
}

// The purpose of a limit: no run admits more than burst + rate x time.
TEST(Gcra, NeverAdmitsMoreThanBurstPlusRateTimesTime) {
  std::mt19937_64 random(11);
  for (int run = 0; run < 200; ++run) {
    const int64_t limit = 1 + static_cast<int64_t>(random() % (run % 2 == 0 ? 100 : 1'000'000));
    const int64_t largest = 1 + static_cast<int64_t>(random() % limit);
    Bucket bucket;
    int64_t now = kStart;
    int64_t admitted = 0;
    int64_t calls = 0;
    for (int i = 0; i < 2000; ++i) {
      now += static_cast<int64_t>(random() % (kWindowNs / 500));
      const int64_t n = 1 + static_cast<int64_t>(random() % largest);
      const int64_t cost = CostNs(n, limit);
      if (bucket.WaitNs(cost, now) > 0) continue;
      bucket.Charge(cost, now);
      admitted += n;
      ++calls;
      __extension__ typedef __int128 Wide;
      // Compared in nanoseconds of bucket: each admission is rounded down by less than one.
      EXPECT_LE(Wide{admitted} * kWindowNs / limit, Wide{kWindowNs} + (now - kStart) + calls);
    }
  }
}

TEST(Gcra, RefundsNeverExceedAFullBucket) {
  std::mt19937_64 random(13);
  Bucket bucket;
  const int64_t limit = 1000;
  int64_t now = kStart;
  for (int i = 0; i < 10'000; ++i) {
    now += static_cast<int64_t>(random() % kSecond);
    const int64_t cost = CostNs(static_cast<int64_t>(random() % 3000), limit);
    if (random() % 2 == 0) {
      bucket.Charge(cost, now);
    } else {
      bucket.Refund(cost, now);
    }
    EXPECT_LE(bucket.Remaining(limit, now), limit);
    EXPECT_GE(bucket.Remaining(limit, now), 0);
    EXPECT_LE(bucket.ResetNs(now), kMaxDebtNs);
  }
}

TEST(Gcra, ARefundUndoesItsCharge) {
  Bucket bucket;
  bucket.Charge(CostNs(10, 100), kStart);
  bucket.Charge(CostNs(30, 100), kStart);
  bucket.Refund(CostNs(30, 100), kStart);
  EXPECT_EQ(bucket.Remaining(100, kStart), 90);
}

TEST(Gcra, DebtIsCappedAtTwoWindows) {
  Bucket bucket;
  for (int i = 0; i < 10; ++i) bucket.Charge(CostNs(1'000'000, 100), kStart);
  EXPECT_EQ(bucket.ResetNs(kStart), kMaxDebtNs);
  EXPECT_EQ(bucket.Remaining(100, kStart), 0);
  EXPECT_TRUE(bucket.Full(kStart + kMaxDebtNs));
}

TEST(Gcra, ARequestAboveTheBurstIsAdmittedWhenTheBucketIsFull) {
  Bucket bucket;
  const int64_t cost = CostNs(500, 100);
  EXPECT_EQ(bucket.WaitNs(cost, kStart), 0);
  bucket.Charge(CostNs(1, 100), kStart);
  const int64_t wait = bucket.WaitNs(cost, kStart);
  EXPECT_EQ(wait, CostNs(1, 100));
  EXPECT_EQ(bucket.WaitNs(cost, kStart + wait), 0);
}

TEST(Gcra, HugeAndNegativeAmountsDoNotOverflow) {
  EXPECT_EQ(CostNs(INT64_MAX, 1), kMaxDebtNs);
  EXPECT_EQ(CostNs(INT64_MAX, INT64_MAX), kWindowNs);
  EXPECT_EQ(CostNs(0, 1), 0);
  EXPECT_EQ(CostNs(-5, 1), 0);
  Bucket bucket;
  EXPECT_EQ(bucket.Remaining(INT64_MAX, kStart), INT64_MAX);
}

}  // namespace
}  // namespace tollgate::ratelimit
