#include "services/inference_router/domain/credit_lease.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kSecond = CreditLease::kSecondUs;
constexpr int64_t kNow = 1'000 * kSecond;

CreditLease::Answer Granted(int64_t nano_usd, int64_t valid_us = 50 * kSecond) {
  return {.month = 202611, .granted_nano_usd = nano_usd, .valid_us = valid_us};
}

// A lease that was asked for at kNow, for a request of 100, and granted.
CreditLease Lease(int64_t granted_nano_usd) {
  CreditLease lease;
  EXPECT_FALSE(lease.Admit(100, kNow));
  EXPECT_TRUE(lease.NextAsk(kNow));
  lease.OnAnswer(Granted(granted_nano_usd), kNow);
  return lease;
}

TEST(CreditLease, AdmitsWhatFitsAndNothingBeforeItIsGranted) {
  CreditLease lease;
  EXPECT_FALSE(lease.Admit(100, kNow));
  const auto ask = lease.NextAsk(kNow);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->month, 0);
  EXPECT_EQ(ask->used_nano_usd, 0);
  EXPECT_EQ(ask->wanted_nano_usd, 800) << "eight of the largest";
  EXPECT_FALSE(lease.NextAsk(kNow + kSecond)) << "one question at a time";
  lease.OnAnswer(Granted(250), kNow);
  EXPECT_TRUE(lease.Admit(100, kNow));
  EXPECT_TRUE(lease.Admit(150, kNow));
  EXPECT_FALSE(lease.Admit(1, kNow));
  lease.Finish(100, 30);
  EXPECT_EQ(lease.left_nano_usd(), 70);
  EXPECT_FALSE(lease.Admit(71, kNow));
  EXPECT_TRUE(lease.Admit(70, kNow));
}

TEST(CreditLease, AsksForMoreWhenAQuarterIsUsedAndToRenew) {
  CreditLease lease = Lease(800);
  EXPECT_FALSE(lease.NextAsk(kNow)) << "all is left";
  EXPECT_TRUE(lease.Admit(100, kNow));
  EXPECT_FALSE(lease.NextAsk(kNow + kSecond / 2));
  EXPECT_TRUE(lease.Admit(100, kNow));
  const int64_t now = kNow + kSecond / 2;
  const auto more = lease.NextAsk(now);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->used_nano_usd, 200);
  EXPECT_EQ(more->wanted_nano_usd, 1000) << "the running requests, and eight of the largest";
  EXPECT_EQ(more->month, 202611);
  lease.OnAnswer(Granted(1200), now);
  EXPECT_EQ(lease.left_nano_usd(), 1000);
  EXPECT_FALSE(lease.NextAsk(now + CreditLease::kAskPauseUs));
  EXPECT_TRUE(lease.NextAsk(now + CreditLease::kRenewUs));
}

// The first requests may take long, and their cost is known only when they have ended.
TEST(CreditLease, WantsWhatRequestsMayCostUntilItKnowsWhatTheyCost) {
  CreditLease lease = Lease(1'000'000);
  EXPECT_FALSE(lease.NextAsk(kNow));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(lease.Admit(100, kNow));
  lease.Finish(100, 1);
  const auto ask = lease.NextAsk(kNow + CreditLease::kYoungUs - 1);
  EXPECT_FALSE(ask) << "enough is left";
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(lease.Admit(50, kNow + CreditLease::kYoungUs));
  const auto more = lease.NextAsk(kNow + CreditLease::kYoungUs);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->wanted_nano_usd, 1000 / 10 * CreditLease::kSeconds + 900 + 500'000 + 800);
}

TEST(CreditLease, WantsWhatItSpendsInTheTimeOfAFailOver) {
  CreditLease lease = Lease(1'000'000);
  EXPECT_FALSE(lease.NextAsk(kNow + kSecond));  // starts a window
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(lease.Admit(100, kNow + kSecond));
    lease.Finish(100, 40);
  }
  const auto ask = lease.NextAsk(kNow + CreditLease::kRenewUs + kSecond);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->wanted_nano_usd, 40'000 / 10 * CreditLease::kSeconds + 800);
}

// A database failover takes less time.
TEST(CreditLease, HoldsWithoutAnswersUntilItsTimeIsOver) {
  CreditLease lease = Lease(800);
  int64_t now = kNow;
  for (; now < kNow + 50 * kSecond; now += kSecond) {
    EXPECT_TRUE(lease.Admit(10, now));
    lease.Finish(10, 0);
    if (lease.NextAsk(now)) lease.OnNoAnswer();
  }
  EXPECT_FALSE(lease.Admit(10, now));
  EXPECT_TRUE(lease.IsOver(now));
  EXPECT_FALSE(lease.NextAsk(now)) << "the next one has another name";
  CreditLease next = lease.Next();
  EXPECT_FALSE(next.IsOver(now));
  const auto ask = next.NextAsk(now);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->used_nano_usd, 0);
  EXPECT_EQ(ask->month, 0);
}

// The ledger counts from its answer, so the lease ends here first.
TEST(CreditLease, ItsTimeCountsFromTheQuestion) {
  CreditLease lease;
  EXPECT_FALSE(lease.Admit(1, kNow));
  EXPECT_TRUE(lease.NextAsk(kNow));
  lease.OnAnswer(Granted(100, 10 * kSecond), kNow + 3 * kSecond);
  EXPECT_TRUE(lease.Admit(1, kNow + 10 * kSecond - 1));
  EXPECT_FALSE(lease.Admit(1, kNow + 10 * kSecond));
}

TEST(CreditLease, ARecalledLeaseIsGivenBackAndNotAskedForAtOnce) {
  CreditLease lease = Lease(800);
  EXPECT_TRUE(lease.Admit(300, kNow));
  auto recalled = Granted(800);
  recalled.recalled = true;
  EXPECT_TRUE(lease.NextAsk(kNow + CreditLease::kRenewUs));
  lease.OnAnswer(recalled, kNow + CreditLease::kRenewUs);
  EXPECT_FALSE(lease.Admit(10, kNow + CreditLease::kRenewUs));
  const int64_t now = kNow + CreditLease::kRenewUs + kSecond;
  const auto ask = lease.NextAsk(now);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->wanted_nano_usd, 0);
  EXPECT_EQ(ask->used_nano_usd, 300) << "running requests stay covered";
  lease.OnAnswer(Granted(300), now);
  EXPECT_TRUE(lease.IsOver(now));
  CreditLease next = lease.Next();
  EXPECT_FALSE(next.Admit(10, now));
  EXPECT_FALSE(next.NextAsk(now + CreditLease::kDeniedUs - 1));
  EXPECT_TRUE(next.NextAsk(now + CreditLease::kDeniedUs));
}

// The ledger refuses to renew the lease of a frozen workspace, and recalls it.
TEST(CreditLease, ARefusalThatRecallsGivesTheLeaseBackAtOnce) {
  CreditLease lease = Lease(800);
  EXPECT_TRUE(lease.Admit(300, kNow));
  const int64_t now = kNow + CreditLease::kRenewUs;
  EXPECT_TRUE(lease.NextAsk(now));
  EXPECT_TRUE(lease.OnAnswer({.denied = true, .recalled = true}, now));
  EXPECT_FALSE(lease.Admit(10, now));
  const auto ask = lease.NextAsk(now);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->wanted_nano_usd, 0);
  EXPECT_EQ(ask->used_nano_usd, 300) << "running requests stay covered";
}

TEST(CreditLease, ARecallBetweenAnswersGivesTheLeaseBackAtOnce) {
  CreditLease lease = Lease(800);
  EXPECT_TRUE(lease.Recall(kNow));
  EXPECT_FALSE(lease.Recall(kNow)) << "it admits nothing already";
  EXPECT_FALSE(lease.Admit(10, kNow));
  const auto ask = lease.NextAsk(kNow);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->wanted_nano_usd, 0);
}

TEST(CreditLease, WithoutALeaseARecallDelaysTheNextQuestion) {
  CreditLease lease;
  EXPECT_FALSE(lease.Admit(10, kNow));
  EXPECT_FALSE(lease.Recall(kNow));
  EXPECT_FALSE(lease.NextAsk(kNow + CreditLease::kDeniedUs - 1));
  EXPECT_TRUE(lease.NextAsk(kNow + CreditLease::kDeniedUs));
}

TEST(CreditLease, ARefusalIsNotRepeatedAtOnce) {
  CreditLease lease;
  EXPECT_FALSE(lease.Admit(10, kNow));
  EXPECT_TRUE(lease.NextAsk(kNow));
  lease.OnAnswer({.denied = true}, kNow);
  EXPECT_FALSE(lease.NextAsk(kNow + CreditLease::kDeniedUs - 1));
  EXPECT_TRUE(lease.NextAsk(kNow + CreditLease::kDeniedUs));
}

TEST(CreditLease, WithoutRequestsItIsGivenBackAndForgotten) {
  CreditLease lease = Lease(800);
  int64_t now = kNow;
  // The lease is renewed until no request has asked for it for kIdleUs.
  for (; now <= kNow + CreditLease::kIdleUs; now += kSecond) {
    if (lease.NextAsk(now)) lease.OnAnswer(Granted(800), now);
  }
  const auto ask = lease.NextAsk(now);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->wanted_nano_usd, 0);
  EXPECT_FALSE(lease.IsForgotten(now));
  lease.OnAnswer(Granted(0), now);
  EXPECT_TRUE(lease.IsOver(now));
  EXPECT_TRUE(lease.Next().IsForgotten(now));
}

}  // namespace
}  // namespace tollgate::inference_router
