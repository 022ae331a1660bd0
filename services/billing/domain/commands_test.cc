#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using CommandsTest = LedgerTest;

TEST_F(CommandsTest, ARepeatedCommandCountsOnce) {
  ASSERT_TRUE(world.Do(MakeAddCredit("a", 100)).ok);
  const Reply again = world.Do(MakeAddCredit("a", 100));
  EXPECT_TRUE(again.ok);
  EXPECT_EQ(again.balance.paid_nano_usd, 100);
  EXPECT_EQ(world.Do(MakeAddCredit("a", 101)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(MakeAddCredit("a", 100, true)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(MakeSetCap("a", 5)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.wallet().paid_nano_usd, 100);
}

TEST_F(CommandsTest, LoweringTheCapRefusesNewRequestsButNotRunningOnes) {
  Credit(10'000);
  ASSERT_TRUE(world.Do(MakeSetCap("cap1", 1000)).ok);
  const Id id = Open(100, 50);
  ASSERT_TRUE(world.Do(MakeSetCap("cap2", 100)).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 100, 50)).denied_by, Deny::kCap);
  EXPECT_TRUE(world.Do(MakeExtend(id, 1, 600)).ok);
  EXPECT_EQ(world.Do(MakeSettle(id, 100, 250)).charged_nano_usd, 600);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 10, 1)).denied_by, Deny::kCap);
  ASSERT_TRUE(world.Do(MakeSetCap("cap3", 1000)).ok);
  EXPECT_TRUE(world.Do(MakeAuthorize(world.NewId(), 100, 50)).ok) << "raising takes effect at once";
}

}  // namespace
}  // namespace tollgate::billing
