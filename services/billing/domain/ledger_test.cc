// Rules for every kind of operation. Rules for one kind are tested next to its source.
#include "services/billing/domain/ledger.h"

#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

TEST_F(LedgerTest, MalformedOperationsAreInvalid) {
  Credit(1000);
  std::vector<Operation> bad;
  bad.push_back(MakeAuthorize(Id(), 1, 1));
  bad.push_back(MakeAuthorize(world.NewId(), -1, 1));
  bad.push_back(MakeAuthorize(world.NewId(), 1, -1));
  bad.push_back(MakeAuthorize(world.NewId(), INT64_MAX, 1));
  bad.push_back(MakeAuthorize(world.NewId(), 1, 1, ""));
  for (const char* name : {"a:b", "Team", "a_b", "-a", "a-"}) {
    bad.push_back(MakeAuthorize(world.NewId(), 1, 1, name));
  }
  bad.push_back(MakeAuthorize(world.NewId(), 1, 1, std::string(64, 'a')));
  for (const int64_t rate : {int64_t{-1}, INT64_MAX}) {
    Authorize authorize = MakeAuthorize(world.NewId(), 1, 1);
    authorize.rates.output_pico_usd = rate;
    bad.push_back(authorize);
  }
  bad.push_back(MakeAddCredit("x", 0));
  bad.push_back(MakeAddCredit("x", -5));
  bad.push_back(MakeAddCredit("x", INT64_MAX));
  bad.push_back(MakeAddCredit("", 5));
  bad.push_back(MakeSetCap("x", -1));
  bad.push_back(MakeHeartbeat(world.NewId(), 1, 1, 1));  // unknown
  bad.push_back(MakeSettle(world.NewId(), 1, 1));
  bad.push_back(MakeExpire(world.NewId()));
  bad.push_back(MakeVoid(Id()));
  const Id open = Open();
  bad.push_back(MakeSettle(open, -1, 1));
  bad.push_back(MakeSettle(open, 1, INT64_MAX));
  bad.push_back(MakeSettle(open, 1, 1, Outcome::kNone));
  bad.push_back(MakeHeartbeat(open, 1, 1, -1));
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(world.Do(bad[i]).denied_by, Deny::kInvalid) << i;
    EXPECT_TRUE(world.last.entries.empty()) << i;
  }
}

TEST_F(LedgerTest, AWalletWithAnOlderFormOfNameStillWorks) {
  world.state.wallets["Old_Name"] = {.workspace = "Old_Name", .paid_nano_usd = 1'000'000};
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(MakeAuthorize(id, 10, 10, "Old_Name")).ok);
  EXPECT_TRUE(world.Do(MakeSettle(id, 10, 10, Outcome::kCompleted, "Old_Name")).ok);
  EXPECT_EQ(world.state.wallets["Old_Name"].held_nano_usd, 0);
}

TEST_F(LedgerTest, AnotherBodyWithTheSameIdIsRefused) {
  Credit(10'000);
  const Id id = Open(100, 50);
  Authorize other = MakeAuthorize(id, 100, 51);
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
  other = MakeAuthorize(id, 100, 50);
  other.key_id = "other";
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(MakeAuthorize(id, 100, 50, "other")).denied_by, Deny::kIdReuse);
  Settle settle = MakeSettle(id, 1, 1);
  settle.workspace = "other";
  EXPECT_EQ(world.Do(settle).denied_by, Deny::kIdReuse);
  ASSERT_TRUE(world.Do(MakeSettle(id, 10, 10)).ok);
  EXPECT_EQ(world.Do(MakeSettle(id, 10, 11)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.wallet().paid_nano_usd, 10'000 - 30);
}

TEST_F(LedgerTest, ARepeatedSettleCountsOnce) {
  Credit(10'000);
  const Id id = Open();
  const Reply first = world.Do(MakeSettle(id, 100, 10));
  EXPECT_EQ(first.charged_nano_usd, 120);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(world.Do(MakeSettle(id, 100, 10)), first);
  EXPECT_EQ(world.wallet().paid_nano_usd, 9880);
}

TEST_F(LedgerTest, EntriesNeverGoBackInTime) {
  world.now_us = UtcMonthStartUs(202512) + kSecondUs;
  Credit(10'000);
  world.now_us -= 5 * kSecondUs;
  const Id id = Open();
  EXPECT_EQ(world.hold(id).month, 202511) << "the current time decides";
  EXPECT_EQ(world.last.entries.front().at_us, UtcMonthStartUs(202512) + kSecondUs);
}

TEST_F(LedgerTest, ABatchAppliesItsOperationsInOrder) {
  Credit(500);
  std::vector<Operation> operations;
  for (int i = 0; i < 4; ++i) operations.push_back(MakeAuthorize(world.NewId(), 100, 50));
  world.last = Apply(world.state, operations, world.now_us, world.policy);
  EXPECT_EQ(world.last.replies[0].authorized_nano_usd, 200);
  EXPECT_EQ(world.last.replies[1].authorized_nano_usd, 200);
  EXPECT_EQ(world.last.replies[2].denied_by, Deny::kHeld);
  EXPECT_EQ(world.last.replies[3].denied_by, Deny::kHeld);
  EXPECT_EQ(world.last.new_holds.size(), 2U);
  EXPECT_EQ(world.last.wallets.size(), 1U);
}

}  // namespace
}  // namespace tollgate::billing
