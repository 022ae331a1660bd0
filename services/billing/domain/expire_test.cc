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

}  // namespace
}  // namespace tollgate::billing
