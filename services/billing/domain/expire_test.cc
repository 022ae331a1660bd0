#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using ExpireTest = LedgerTest;

TEST_F(ExpireTest, AnExpiredHoldIsChargedByItsLastHeartbeat) {
  Credit(10'000);
  const Id silent = Open();
  const Id alive = Open();
  EXPECT_FALSE(world.Do(MakeExpire(silent)).ok);  // not yet
  world.now_us += 59 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeHeartbeat(alive, 1, 100, 20)).ok);
  world.now_us += 2 * kSecondUs;
  EXPECT_TRUE(world.Do(MakeExpire(silent)).ok);
  EXPECT_EQ(world.hold(silent).state, HoldState::kExpiredVoid);
  EXPECT_FALSE(world.Do(MakeExpire(alive)).ok);
  world.now_us += 60 * kSecondUs;
  const Reply expired = world.Do(MakeExpire(alive));
  EXPECT_TRUE(expired.ok);
  EXPECT_EQ(expired.charged_nano_usd, 140);
  EXPECT_EQ(world.hold(alive).state, HoldState::kExpiredCharged);
  EXPECT_EQ(world.Do(MakeExpire(alive)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().paid_nano_usd, 9860);
}

TEST_F(ExpireTest, AHoldExpiresAtItsTimeAndNotOneMicrosecondEarlier) {
  Credit(1000);
  const Id id = Open();
  world.now_us += world.policy.hold_ttl_us - 1;
  EXPECT_FALSE(world.Do(MakeExpire(id)).ok);
  world.now_us += 1;
  EXPECT_TRUE(world.Do(MakeExpire(id)).ok);
}

TEST_F(ExpireTest, HeartbeatsPostponeTheExpiryByOneDayAtMost) {
  Credit(10'000);
  const Id id = Open();
  for (int i = 1; i <= 24 * 60 + 1; ++i) {
    world.now_us += 59 * kSecondUs;
    world.Do(MakeHeartbeat(id, i, 100, 1));
  }
  world.now_us = world.hold(id).created_us + 24 * kHourUs;
  EXPECT_TRUE(world.Do(MakeExpire(id)).ok);
}

// Decision 52.
TEST_F(ExpireTest, AHoldOfWhichNothingWasDeliveredExpiresFree) {
  Credit(1000);
  const Id without_output = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(without_output, 1, 100, 0)).ok);
  Authorize whole = MakeAuthorize(world.NewId(), 100, 100);
  whole.streamed = false;
  ASSERT_TRUE(world.Do(whole).ok);
  ASSERT_TRUE(world.Do(MakeHeartbeat(whole.request_id, 1, 100, 30)).ok);
  world.now_us += 61 * kSecondUs;
  for (const Id& id : {without_output, whole.request_id}) {
    EXPECT_TRUE(world.Do(MakeExpire(id)).ok);
    EXPECT_EQ(world.hold(id).state, HoldState::kExpiredVoid);
    EXPECT_EQ(world.hold(id).charged_nano_usd, 0);
  }
  // The router was alive after all, and its caller got the answer.
  ASSERT_TRUE(world.Do(MakeSettle(whole.request_id, 100, 40)).ok);
  EXPECT_EQ(world.hold(whole.request_id).charged_nano_usd, 180);
}

}  // namespace
}  // namespace tollgate::billing
