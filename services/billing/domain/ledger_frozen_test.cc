// Replies for a frozen wallet, and when the ledger itself freezes one.
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

struct FrozenTest : ::testing::Test {
  World world;
  Reply Authorize(const Id& id) { return world.Do(MakeAuthorize(id, 100, 100)); }
  Wallet& wallet() { return world.state.wallets.at("ws"); }
};

TEST_F(FrozenTest, TheReasonDecidesTheAnswer) {
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 100'000)).ok);
  const Id running = world.NewId();
  ASSERT_TRUE(Authorize(running).ok);
  wallet().frozen = Freeze::kOperator;
  EXPECT_EQ(Authorize(world.NewId()).denied_by, Deny::kFrozen);
  wallet().frozen = Freeze::kDispute;
  EXPECT_EQ(Authorize(world.NewId()).denied_by, Deny::kFrozen);
  wallet().frozen = Freeze::kFailedCheck;
  EXPECT_EQ(Authorize(world.NewId()).denied_by, Deny::kFrozenByCheck);
  EXPECT_TRUE(world.Do(MakeSettle(running, 100, 100)).ok) << "running requests are still settled";
}

TEST_F(FrozenTest, ABrokenInvariantFreezesTheWalletAndLosesNoSettlement) {
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 100'000)).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(Authorize(id).ok);
  const int64_t held = wallet().held_nano_usd;
  wallet().held_nano_usd = 0;  // the wallet disagrees with its hold
  const Reply settled = world.Do(MakeSettle(id, 100, 100));
  EXPECT_FALSE(settled.ok);
  EXPECT_EQ(settled.denied_by, Deny::kUnavailable) << "the sender retries";
  EXPECT_EQ(world.last.violations.size(), 1U);
  EXPECT_EQ(world.last.frozen, std::vector<std::string>{"ws"});
  EXPECT_EQ(world.last.wallets, std::vector<std::string>{"ws"});
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_TRUE(world.last.dead_letters.empty()) << "its sender keeps it";
  EXPECT_EQ(wallet().frozen, Freeze::kFailedCheck);
  EXPECT_EQ(Authorize(world.NewId()).denied_by, Deny::kFrozenByCheck);
  EXPECT_TRUE(world.last.frozen.empty()) << "reported once";
  wallet().held_nano_usd = held;  // repaired
  EXPECT_TRUE(world.Do(MakeSettle(id, 100, 100)).ok);
}

// Another replica creates the wallet between two reads of this batch: the batch has the command or
// the hold but not the wallet.
TEST_F(FrozenTest, ACommandOrHoldWithoutItsWalletIsAskedAgain) {
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 100'000)).ok);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 50'000)).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(Authorize(id).ok);
  world.state.wallets.clear();
  const std::vector<Operation> operations = {
      MakeAddCredit("c", 100'000),
      MakeSetCap("cap", 50'000),
      MakeAuthorize(id, 100, 100),
      MakeHeartbeat(id, 1, 10, 10),
      MakeExtend(id, 2, 1000),
      MakeSettle(id, 10, 10),
      MakeVoid(id),
      MakeExpire(id),
  };
  for (const Operation& op : operations) {
    EXPECT_EQ(world.Do(op).denied_by, Deny::kUnavailable) << kOperationNames[op.index()];
    EXPECT_TRUE(world.last.entries.empty() && world.last.violations.empty());
  }
}

// A call that is refused, or that reaches no engine, writes no row.
TEST_F(FrozenTest, ACheckWritesNothing) {
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 100'000)).ok);
  auto check = MakeAuthorize(world.NewId(), 100, 1);
  check.check_only = true;
  const Reply granted = world.Do(check);
  EXPECT_TRUE(granted.ok);
  EXPECT_EQ(granted.authorized_nano_usd, 102);
  EXPECT_TRUE(world.last.entries.empty() && world.last.new_holds.empty() &&
              world.last.wallets.empty() && world.last.months.empty());
  EXPECT_TRUE(world.state.holds.empty());
  check.prompt_bound = 200'000;
  EXPECT_EQ(world.Do(check).denied_by, Deny::kNoCredit);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 50)).ok);
  check.prompt_bound = 100;
  EXPECT_EQ(world.Do(check).denied_by, Deny::kCap);
}

TEST_F(FrozenTest, ATombstoneIsWrittenOnlyWhereADelayedAuthorizeCouldOpenAHold) {
  const auto writes = [this](const Id& id) {
    EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
    return !world.last.new_holds.empty();
  };
  EXPECT_FALSE(writes(world.NewId())) << "without a wallet every authorize is refused";
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 50)).ok);
  EXPECT_FALSE(writes(world.NewId())) << "no credit";
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 100'000)).ok);
  EXPECT_TRUE(writes(world.NewId()));
  const Id old = world.NewId();
  world.now_us += 121 * kSecondUs;
  EXPECT_FALSE(writes(old)) << "its authorize would have arrived by now";
}

}  // namespace
}  // namespace tollgate::billing
