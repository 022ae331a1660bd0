#include "services/ratelimit/domain/limiter.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kSlotLifeUs = 30 * kSecondUs;
constexpr int64_t kLimiterStart = 1000 * kSecondUs;

Id SlotId(uint64_t n) { return Id::Make(1, 0, n); }

struct Call {
  Limits key;
  Limits workspace;
  int64_t tokens = 0;
  std::string key_id = "k";
  std::string workspace_id = "w";
};

Claim ClaimOf(const Call& call, uint64_t slot) {
  return {.slot = SlotId(slot),
          .scope = call.workspace_id,
          .subjects = {{Who::kKey, "key:" + call.key_id, call.key},
                       {Who::kWorkspace, "all", call.workspace}},
          .tokens = call.tokens};
}

AcquireOutcome Acquire(Limiter& limiter, uint64_t slot, const Call& call,
                       int64_t now = kLimiterStart) {
  return limiter.Acquire(ClaimOf(call, slot), now);
}

PeekOutcome Peek(Limiter& limiter, const Call& call, int64_t now = kLimiterStart) {
  const Claim claim = ClaimOf(call, 0);
  return Describe(claim, limiter.Read(claim, now));
}

Limiter::Renewal Renew(Limiter& limiter, uint64_t slot, const Call& call, int64_t now) {
  return limiter.Renew(ClaimOf(call, slot), now);
}

TEST(Limiter, WithoutLimitsEverythingIsGranted) {
  Limiter limiter(kSlotLifeUs);
  for (uint64_t i = 0; i < 1000; ++i) {
    const AcquireOutcome outcome = Acquire(limiter, i, {.tokens = 1'000'000'000});
    EXPECT_TRUE(outcome.granted());
    EXPECT_EQ(outcome.requests.limit, 0);
    EXPECT_EQ(outcome.tokens.limit, 0);
  }
}

TEST(Limiter, TheRequestLimitRefusesWithRetryAfter) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 3}};
  for (uint64_t i = 0; i < 3; ++i) {
    const AcquireOutcome outcome = Acquire(limiter, i, call);
    EXPECT_TRUE(outcome.granted());
    EXPECT_EQ(outcome.requests.limit, 3);
    EXPECT_EQ(outcome.requests.remaining, 2 - static_cast<int64_t>(i));
  }
  const AcquireOutcome refused = Acquire(limiter, 3, call);
  EXPECT_EQ(refused.denied_by, Kind::kRequests);
  EXPECT_EQ(refused.denied_subject, Who::kKey);
  EXPECT_EQ(refused.retry_after_ms, 20'000);  // exactly: no jitter
  EXPECT_EQ(refused.requests.remaining, 0);
  EXPECT_EQ(refused.requests.reset_ms, 60'000);
  EXPECT_TRUE(Acquire(limiter, 4, call, kLimiterStart + 20 * kSecondUs).granted());
  EXPECT_FALSE(Acquire(limiter, 5, call, kLimiterStart + 20 * kSecondUs).granted());
}

TEST(Limiter, AcquireTakesAllOrNothing) {
  Limiter limiter(kSlotLifeUs);
  // The token limit of the workspace refuses: requests and slots must not change.
  const Call call{
      .key = {.requests_per_minute = 10, .tokens_per_minute = 1000, .concurrent_requests = 5},
      .workspace = {.requests_per_minute = 20, .tokens_per_minute = 100, .concurrent_requests = 5},
      .tokens = 60};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  const PeekOutcome before = Peek(limiter, call);
  const AcquireOutcome refused = Acquire(limiter, 2, call);
  EXPECT_EQ(refused.denied_by, Kind::kTokens);
  const PeekOutcome after = Peek(limiter, call);
  EXPECT_EQ(before.requests.remaining, after.requests.remaining);
  EXPECT_EQ(before.tokens.remaining, after.tokens.remaining);
  EXPECT_EQ(before.concurrency.remaining, after.concurrency.remaining);
  EXPECT_EQ(after.requests.remaining, 9);
  EXPECT_EQ(after.tokens.remaining, 40);
  EXPECT_EQ(after.concurrency.remaining, 4);
  EXPECT_EQ(limiter.slots(), 1u);
}

TEST(Limiter, TheWorkspaceLimitCoversAllItsKeys) {
  Limiter limiter(kSlotLifeUs);
  Call call{.key = {.requests_per_minute = 100}, .workspace = {.requests_per_minute = 4}};
  for (uint64_t i = 0; i < 4; ++i) {
    call.key_id = "k" + std::to_string(i);
    EXPECT_TRUE(Acquire(limiter, i, call).granted());
  }
  call.key_id = "k9";
  const AcquireOutcome refused = Acquire(limiter, 9, call);
  EXPECT_EQ(refused.denied_by, Kind::kRequests);
  EXPECT_EQ(refused.requests.limit, 4);  // the tighter limit
  call.workspace_id = "another";
  EXPECT_TRUE(Acquire(limiter, 10, call).granted());
}

TEST(Limiter, SeveralRefusalsReportTheFirstKindAndTheLongestWait) {
  Limiter limiter(kSlotLifeUs);
  const Call call{
      .key = {.requests_per_minute = 60, .tokens_per_minute = 60, .concurrent_requests = 1},
      .tokens = 60};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  const AcquireOutcome slot = Acquire(limiter, 2, call);
  EXPECT_EQ(slot.denied_by, Kind::kConcurrency);
  EXPECT_GE(slot.retry_after_ms, 60'000);  // the wait for tokens
}

TEST(Limiter, ReleaseReturnsTheConcurrencySlot) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.concurrent_requests = 2}};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  ASSERT_TRUE(Acquire(limiter, 2, call).granted());
  const AcquireOutcome refused = Acquire(limiter, 3, call);
  EXPECT_EQ(refused.denied_by, Kind::kConcurrency);
  EXPECT_GE(refused.retry_after_ms, 1000);
  EXPECT_LE(refused.retry_after_ms, 10'000);
  EXPECT_TRUE(limiter.Release("w", SlotId(1), 0, false, kLimiterStart));
  EXPECT_FALSE(
      limiter.Release("w", SlotId(1), 0, false, kLimiterStart));  // a second release frees nothing
  EXPECT_TRUE(Acquire(limiter, 4, call).granted());
  EXPECT_FALSE(Acquire(limiter, 5, call).granted());
}

TEST(Limiter, AWorkspaceCannotReleaseTheSlotOfAnother) {
  Limiter limiter(kSlotLifeUs);
  ASSERT_TRUE(Acquire(limiter, 1, {}).granted());
  ASSERT_TRUE(Acquire(limiter, 2, {.workspace_id = "v"}).granted());
  EXPECT_FALSE(limiter.Release("v", SlotId(1), 0, true, kLimiterStart));
  EXPECT_FALSE(limiter.Release("unknown", SlotId(1), 0, true, kLimiterStart));
  EXPECT_TRUE(limiter.Release("w", SlotId(1), 0, true, kLimiterStart));
  EXPECT_EQ(limiter.slots(), 1u);
}

TEST(Limiter, SlotsExpireUnlessRenewed) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.concurrent_requests = 2}};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  ASSERT_TRUE(Acquire(limiter, 2, call).granted());
  EXPECT_EQ(Renew(limiter, 1, call, kLimiterStart + 20 * kSecondUs), Limiter::Renewal::kRenewed);
  EXPECT_FALSE(Acquire(limiter, 3, call, kLimiterStart + kSlotLifeUs - 1).granted());
  EXPECT_TRUE(Acquire(limiter, 4, call, kLimiterStart + kSlotLifeUs).granted());
  EXPECT_FALSE(Acquire(limiter, 5, call, kLimiterStart + kSlotLifeUs).granted());
  EXPECT_EQ(limiter.expired(), 1);
  EXPECT_EQ(Renew(limiter, 1, call, kLimiterStart + kSlotLifeUs), Limiter::Renewal::kRenewed);
}

// If a limiter has lost a slot, its renewal counts the running request again.
TEST(Limiter, RenewOfAnUnknownSlotRestoresIt) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 5, .concurrent_requests = 1}};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  EXPECT_EQ(Renew(limiter, 2, call, kLimiterStart), Limiter::Renewal::kRestored);
  EXPECT_EQ(Renew(limiter, 2, call, kLimiterStart), Limiter::Renewal::kRenewed);
  EXPECT_TRUE(limiter.Release("w", SlotId(1), 0, true, kLimiterStart));
  EXPECT_FALSE(Acquire(limiter, 3, call).granted());  // the restored slot counts
  EXPECT_TRUE(limiter.Release("w", SlotId(2), 0, true, kLimiterStart));
  EXPECT_EQ(Peek(limiter, call).requests.remaining, 5);  // a restored slot has no rates to refund
  EXPECT_TRUE(Acquire(limiter, 4, call).granted());
  // Without a limit on concurrency there is nothing to restore.
  EXPECT_EQ(Renew(limiter, 5, {.key = {.requests_per_minute = 5}}, kLimiterStart),
            Limiter::Renewal::kUnknown);
}

// A limit in shadow mode refuses nothing, and counts exactly what it would refuse when enforced.
TEST(Limiter, ShadowModeCountsWhatEnforcementWouldRefuse) {
  Limiter enforced(kSlotLifeUs), shadow(kSlotLifeUs);
  Call call{.key = {.requests_per_minute = 60, .tokens_per_minute = 600}, .tokens = 7};
  Call tried = call;
  tried.key.shadow = true;
  int refused = 0, counted = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const int64_t now = kLimiterStart + static_cast<int64_t>(i) * 400'000;
    refused += Acquire(enforced, i, call, now).granted() ? 0 : 1;
    const AcquireOutcome outcome = Acquire(shadow, i, tried, now);
    EXPECT_TRUE(outcome.granted());
    EXPECT_EQ(outcome.requests.limit, 0) << "a header must not name a limit in shadow mode";
    counted += outcome.shadow_refusals.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(counted, refused);
}

// A process that does not know the use before its start grants no burst.
TEST(Limiter, StartedEmptyItGrantsTheRateWithoutABurst) {
  Limiter limiter(kSlotLifeUs, kLimiterStart + 60 * kSecondUs);
  const Call call{.key = {.requests_per_minute = 60}};
  EXPECT_FALSE(Acquire(limiter, 1, call).granted());
  int granted = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const int64_t now = kLimiterStart + static_cast<int64_t>(i) * 100'000;
    granted += Acquire(limiter, i + 2, call, now).granted() ? 1 : 0;
  }
  EXPECT_NEAR(granted, 30, 1);  // 30 s at one a second
}

TEST(Limiter, ARepeatedAcquireCostsNothing) {
  Limiter limiter(kSlotLifeUs);
  const Call call{
      .key = {.requests_per_minute = 10, .tokens_per_minute = 100, .concurrent_requests = 1},
      .tokens = 10};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  const AcquireOutcome again = Acquire(limiter, 1, call);
  EXPECT_TRUE(again.granted());
  EXPECT_EQ(again.requests.remaining, 9);
  EXPECT_EQ(again.tokens.remaining, 90);
  EXPECT_EQ(limiter.slots(), 1u);
}

TEST(Limiter, RefundReturnsEverything) {
  Limiter limiter(kSlotLifeUs);
  const Call call{
      .key = {.requests_per_minute = 10, .tokens_per_minute = 100, .concurrent_requests = 1},
      .workspace = {.requests_per_minute = 10, .tokens_per_minute = 100, .concurrent_requests = 1},
      .tokens = 70};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  EXPECT_TRUE(limiter.Release("w", SlotId(1), 0, true, kLimiterStart));
  const PeekOutcome left = Peek(limiter, call);
  EXPECT_EQ(left.requests.remaining, 10);
  EXPECT_EQ(left.tokens.remaining, 100);
  EXPECT_EQ(left.concurrency.remaining, 1);
}

TEST(Limiter, ReleaseReplacesTheEstimateByTheActualCount) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 10, .tokens_per_minute = 1000}, .tokens = 500};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  limiter.Release("w", SlotId(1), 100, false, kLimiterStart);
  EXPECT_EQ(Peek(limiter, call).tokens.remaining, 900);
  EXPECT_EQ(Peek(limiter, call).requests.remaining, 9);  // the request was made
  ASSERT_TRUE(Acquire(limiter, 2, call).granted());
  limiter.Release("w", SlotId(2), 1600, false, kLimiterStart);
  EXPECT_EQ(Peek(limiter, call).tokens.remaining, 0);  // 700 in debt
  const AcquireOutcome refused = Acquire(limiter, 3, call);
  EXPECT_EQ(refused.denied_by, Kind::kTokens);
  EXPECT_GE(refused.retry_after_ms, 72'000);  // 700 of debt and 500 to take, at 1000 a minute
}

TEST(Limiter, AChangedLimitAppliesToTheNextRequest) {
  Limiter limiter(kSlotLifeUs);
  Call call{.key = {.requests_per_minute = 2}};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  ASSERT_TRUE(Acquire(limiter, 2, call).granted());
  ASSERT_FALSE(Acquire(limiter, 3, call).granted());
  call.key.requests_per_minute = 0;
  EXPECT_TRUE(Acquire(limiter, 4, call).granted());
  call.key.requests_per_minute = 10;
  // the used share of the bucket does not change
  EXPECT_FALSE(Acquire(limiter, 5, call).granted());
  EXPECT_TRUE(Acquire(limiter, 6, call, kLimiterStart + 6 * kSecondUs).granted());
}

TEST(Limiter, IdleSubjectsAreDropped) {
  Limiter limiter(kSlotLifeUs);
  Call call{.key = {.requests_per_minute = 100, .tokens_per_minute = 1000}, .tokens = 1};
  for (uint64_t i = 0; i < 20'000; ++i) {
    const int64_t now = kLimiterStart + static_cast<int64_t>(i) * kSecondUs;
    call.key_id = "k" + std::to_string(i);
    ASSERT_TRUE(Acquire(limiter, i, call, now).granted());
    limiter.Release("w", SlotId(i), 1, false, now);
  }
  // Subjects used in the last hour are kept; the others are dropped as new ones come.
  EXPECT_LE(limiter.subjects(), 2 * 3601u);
  limiter.Sweep(kLimiterStart + 30'000 * kSecondUs);
  EXPECT_EQ(limiter.subjects(), 0u);
}

// Compared with a naive model: the slots in use equal those that live and never exceed the limit.
TEST(Limiter, SlotsInUseEqualLiveSlotsInAnyOrderOfCalls) {
  std::mt19937_64 random(3);
  Limiter limiter(kSlotLifeUs);
  const int64_t limit = 8;
  const Call call{.key = {.concurrent_requests = limit}};
  std::map<uint64_t, int64_t> live;  // slot to expiry
  int64_t now = kLimiterStart;
  for (int i = 0; i < 50'000; ++i) {
    now += static_cast<int64_t>(random() % (5 * kSecondUs));
    std::erase_if(live, [&](const auto& entry) { return entry.second <= now; });
    const uint64_t slot = random() % 40;
    switch (random() % 4) {
      case 0:
      case 1: {
        const bool expected = live.contains(slot) || static_cast<int64_t>(live.size()) < limit;
        ASSERT_EQ(Acquire(limiter, slot, call, now).granted(), expected);
        if (expected) live[slot] = now + kSlotLifeUs;
        break;
      }
      case 2:
        ASSERT_EQ(limiter.Release("w", SlotId(slot), 0, random() % 2 == 0, now),
                  live.erase(slot) > 0);
        break;
      default:
        ASSERT_EQ(Renew(limiter, slot, call, now) == Limiter::Renewal::kRenewed,
                  live.contains(slot));
        live[slot] = now + kSlotLifeUs;  // an unknown slot is restored
    }
    ASSERT_EQ(limiter.slots(), live.size());
    ASSERT_EQ(Peek(limiter, call, now).concurrency.remaining,
              std::max<int64_t>(limit - static_cast<int64_t>(live.size()), 0));
  }
}

constexpr int64_t kMinute = 60 * kSecondUs;
// The start of a minute.
constexpr int64_t kHour = 100 * kMinute;

std::vector<MinuteUse> UseOfKey(const Limiter& limiter, int64_t now) {
  return limiter.ReadUse("w", "key:k", now);
}

// Requests and refusals count in the minute in which they happen. Tokens count in the minute of
// their request, first as estimated, then as used. A refunded request does not count.
TEST(Limiter, UseIsWhatWasAdmittedRefusedAndSettled) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 3, .tokens_per_minute = 10'000}, .tokens = 500};
  ASSERT_TRUE(Acquire(limiter, 1, call, kHour).granted());
  ASSERT_TRUE(Acquire(limiter, 2, call, kHour).granted());
  ASSERT_TRUE(Acquire(limiter, 3, call, kHour).granted());
  ASSERT_FALSE(Acquire(limiter, 4, call, kHour).granted());
  ASSERT_FALSE(Acquire(limiter, 5, call, kHour).granted());
  const MinuteUse first{.minute = 100,
                        .requests = 3,
                        .tokens = 1500,
                        .requests_peak_us = 60'000'000,
                        .tokens_peak_us = 9'000'000,
                        .refused_requests = 2};
  EXPECT_EQ(UseOfKey(limiter, kHour), std::vector{first});
  // The request ends in the next minute, and counts in the one in which it was admitted.
  const int64_t later = kHour + kMinute;
  limiter.Release("w", SlotId(1), 40, false, kHour + 20 * kSecondUs);
  ASSERT_TRUE(Renew(limiter, 2, call, kHour + 25 * kSecondUs) == Limiter::Renewal::kRenewed);
  ASSERT_TRUE(Renew(limiter, 3, call, kHour + 25 * kSecondUs) == Limiter::Renewal::kRenewed);
  ASSERT_TRUE(Renew(limiter, 2, call, kHour + 45 * kSecondUs) == Limiter::Renewal::kRenewed);
  ASSERT_TRUE(limiter.Release("w", SlotId(3), 0, true, kHour + 45 * kSecondUs));
  ASSERT_TRUE(limiter.Release("w", SlotId(2), 9000, false, later));
  const auto told = UseOfKey(limiter, later);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].requests, 2u) << "the third was given back";
  EXPECT_EQ(told[0].tokens, 9040);
  EXPECT_EQ(told[0].refused_requests, 2u);
  EXPECT_EQ(told[1].requests, 0u);
  EXPECT_EQ(told[1].tokens, 0);
  EXPECT_EQ(told[1].tokens_peak_us, 51'000'000u) << "8,500 more than the estimate";
}

TEST(Limiter, UseIsToldForTheMinuteThatRunsAndThe59BeforeIt) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 100}};
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(Acquire(limiter, i, call, kHour + static_cast<int64_t>(i) * kMinute).granted());
    limiter.Sweep(kHour + static_cast<int64_t>(i) * kMinute);
  }
  const auto told = UseOfKey(limiter, kHour + 100 * kMinute - 1);
  ASSERT_EQ(told.size(), 60u);
  EXPECT_EQ(told.front().minute, 140u);
  EXPECT_EQ(told.back().minute, 199u);
  EXPECT_EQ(UseOfKey(limiter, kHour + 100 * kMinute).size(), 59u);
  EXPECT_EQ(UseOfKey(limiter, kHour + 200 * kMinute).size(), 0u);
}

// Also counts slots in minutes in which no request began.
TEST(Limiter, TheMostSlotsOfAMinuteAreThoseThatWereHeldInIt) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.concurrent_requests = 3}};
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(Acquire(limiter, i, call, kHour).granted());
  ASSERT_FALSE(Acquire(limiter, 4, call, kHour).granted());
  ASSERT_TRUE(limiter.Release("w", SlotId(3), 0, false, kHour + kSecondUs));
  // Two requests keep running and renew their slots every three seconds.
  for (int64_t at = kHour + 3 * kSecondUs; at < kHour + 3 * kMinute; at += 3 * kSecondUs) {
    ASSERT_EQ(Renew(limiter, 1, call, at), Limiter::Renewal::kRenewed);
    ASSERT_EQ(Renew(limiter, 2, call, at), Limiter::Renewal::kRenewed);
  }
  // Both end at the start of a minute.
  ASSERT_TRUE(limiter.Release("w", SlotId(1), 0, false, kHour + 3 * kMinute));
  ASSERT_TRUE(limiter.Release("w", SlotId(2), 0, false, kHour + 3 * kMinute));
  const auto told = UseOfKey(limiter, kHour + 4 * kMinute);
  ASSERT_EQ(told.size(), 4u);
  EXPECT_EQ(told[0].running_peak, 3u);
  EXPECT_EQ(told[0].refused_concurrency, 1u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(told[i].running_peak, 2u) << i;
}

// A refused request counts at each limit that refuses it, and at no other.
TEST(Limiter, ARefusalCountsAtEachLimitThatRefuses) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 1}, .workspace = {.requests_per_minute = 2}};
  ASSERT_TRUE(Acquire(limiter, 1, call, kHour).granted());
  ASSERT_FALSE(Acquire(limiter, 2, call, kHour).granted());
  Call other = call;
  other.key_id = "other";
  ASSERT_TRUE(Acquire(limiter, 3, other, kHour).granted());
  ASSERT_FALSE(Acquire(limiter, 4, call, kHour).granted());
  EXPECT_EQ(UseOfKey(limiter, kHour)[0].refused_requests, 2u);
  const MinuteUse workspace = limiter.ReadUse("w", "all", kHour)[0];
  EXPECT_EQ(workspace.refused_requests, 1u);
  EXPECT_EQ(workspace.requests, 2u);
}

// Limits in shadow mode count what they would have refused.
TEST(Limiter, UseOfALimitInShadowModeIsThatOfEnforcement) {
  Limiter limiter(kSlotLifeUs);
  const Call call{.key = {.requests_per_minute = 2, .shadow = true}};
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(Acquire(limiter, i, call, kHour).granted());
  const auto told = UseOfKey(limiter, kHour);
  EXPECT_EQ(told[0].requests, 2u);
  EXPECT_EQ(told[0].refused_requests, 3u);
}

TEST(Limiter, NegativeAmountsChangeNothing) {
  Limiter limiter(kSlotLifeUs);
  const Call call{
      .key = {.requests_per_minute = -5, .tokens_per_minute = 100, .concurrent_requests = -1},
      .tokens = -1000};
  ASSERT_TRUE(Acquire(limiter, 1, call).granted());
  EXPECT_EQ(Peek(limiter, call).tokens.remaining, 100);
  limiter.Release("w", SlotId(1), -1000, false, kLimiterStart);
  EXPECT_EQ(Peek(limiter, call).tokens.remaining, 100);
}

}  // namespace
}  // namespace tollgate::ratelimit
