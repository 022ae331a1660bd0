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

// Decision 64.
TEST_F(CommandsTest, AWalletIsOpenedOnceAndCreditForNoWalletIsRefused) {
  AddCredit credit = MakeAddCredit("a", 100);
  credit.open_only = true;
  EXPECT_EQ(world.Do(credit).denied_by, Deny::kUnknownWorkspace);
  SetCap cap = MakeSetCap("cap", 5);
  cap.open_only = true;
  EXPECT_EQ(world.Do(cap).denied_by, Deny::kUnknownWorkspace);
  EXPECT_TRUE(world.state.wallets.empty());
  EXPECT_TRUE(world.state.commands.empty());

  EXPECT_EQ(world.Do(OpenWallet{"Not An Id"}).denied_by, Deny::kInvalid);
  ASSERT_TRUE(world.Do(OpenWallet{"ws"}).ok);
  EXPECT_EQ(world.last.new_wallets, std::vector<std::string>{"ws"});
  EXPECT_EQ(world.last.wallets, std::vector<std::string>{"ws"});
  ASSERT_TRUE(world.Do(credit).ok);
  const Reply again = world.Do(OpenWallet{"ws"});
  EXPECT_TRUE(again.ok);
  EXPECT_EQ(again.balance.paid_nano_usd, 100);
  EXPECT_TRUE(world.last.wallets.empty());
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
  EXPECT_TRUE(world.Do(MakeAuthorize(world.NewId(), 100, 50)).ok) << "a raised cap applies at once";
}

}  // namespace
}  // namespace tollgate::billing
