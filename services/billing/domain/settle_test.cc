#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using SettleTest = LedgerTest;

TEST_F(SettleTest, GrantedCreditIsChargedFirst) {
  Credit(1000);
  Credit(100, /*granted=*/true);
  ASSERT_TRUE(world.Do(MakeSettle(Open(), 60, 0)).ok);
  EXPECT_EQ(world.wallet().granted_nano_usd, 40);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  ASSERT_TRUE(world.Do(MakeSettle(Open(), 60, 0)).ok);
  EXPECT_EQ(world.wallet().granted_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 980);
}

TEST_F(SettleTest, AFailureBeforeOutputIsFree) {
  Credit(1000);
  const Id id = Open();
  const Settle settle = MakeSettle(id, 100, 0, Outcome::kFailedBeforeOutput);
  const Reply reply = world.Do(settle);
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.charged_nano_usd, 0);
  EXPECT_EQ(world.hold(id).state, HoldState::kVoided);
  EXPECT_EQ(world.Do(settle), reply);
  const Id other = Open();
  EXPECT_EQ(world.Do(MakeSettle(other, 0, 0, Outcome::kClientGone)).charged_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
}

TEST_F(SettleTest, CostAboveTheHoldRaisesItOnceMoreAndTheRestIsOverrun) {
  Credit(1000);
  const Id roomy = Open(100, 50);  // 200
  EXPECT_EQ(world.Do(MakeSettle(roomy, 100, 100)).charged_nano_usd, 300);
  EXPECT_EQ(world.hold(roomy).overrun_nano_usd, 0);
  const Id tight = Open(100, 50);
  const Id other = Open(400, 0);  // leaves 100
  EXPECT_EQ(world.Do(MakeSettle(tight, 100, 200)).charged_nano_usd, 300);
  EXPECT_EQ(world.hold(tight).overrun_nano_usd, 200);
  EXPECT_EQ(world.wallet().paid_nano_usd, 400);
  EXPECT_EQ(world.wallet().available_nano_usd(), 0);
  EXPECT_TRUE(world.Do(MakeSettle(other, 400, 0)).ok);
}

TEST_F(SettleTest, PartsAreClampedToTheirWhole) {
  Credit(1000);
  Settle settle = MakeSettle(Open(), 10, 5);
  settle.usage.cached = 11;
  settle.usage.cache_write = 12;
  settle.usage.reasoning = 6;
  const Reply first = world.Do(settle);
  EXPECT_TRUE(first.ok);
  const Usage& stored = world.hold(settle.request_id).usage;
  EXPECT_EQ(stored.cached, 10);
  EXPECT_EQ(stored.cache_write, 10);
  EXPECT_EQ(stored.reasoning, 5);
  EXPECT_EQ(world.Do(settle), first) << "a repetition is recognized";
}

struct LateSettleCase {
  const char* rule;
  int64_t heartbeat;  // output tokens of the last heartbeat, -1: none
  int64_t settled;    // output tokens of the late settle
  int64_t after_us;
  Deny denied_by;
  int64_t charged_nano_usd;
  Outcome outcome = Outcome::kCompleted;
};

class LateSettleRulesTest : public ::testing::TestWithParam<LateSettleCase> {};

TEST_P(LateSettleRulesTest, Rule) {
  const LateSettleCase& c = GetParam();
  World world;
  ASSERT_TRUE(world.Do(MakeAddCredit("c", 10'000)).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(MakeAuthorize(id, 100, 100)).ok);
  if (c.heartbeat >= 0) ASSERT_TRUE(world.Do(MakeHeartbeat(id, 1, 100, c.heartbeat)).ok);
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(id)).ok);
  world.now_us += c.after_us;
  const Settle settle = MakeSettle(id, 100, c.settled, c.outcome);
  const Reply reply = world.Do(settle);
  EXPECT_EQ(reply.denied_by, c.denied_by);
  EXPECT_EQ(reply.charged_nano_usd, c.charged_nano_usd);
  EXPECT_EQ(world.wallet().paid_nano_usd, 10'000 - c.charged_nano_usd);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
  EXPECT_EQ(world.Do(settle), reply);
  if (reply.ok) {
    EXPECT_EQ(world.Do(MakeSettle(id, 100, c.settled + 1)).denied_by, Deny::kIdReuse)
        << "only once";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, LateSettleRulesTest,
    ::testing::Values(LateSettleCase{"charges the missing part", 20, 50, kHourUs, Deny::kNone, 200},
                      LateSettleCase{"charges an expired void", -1, 50, kHourUs, Deny::kNone, 200},
                      LateSettleCase{"refunds the excess", 50, 20, kHourUs, Deny::kNone, 140},
                      LateSettleCase{"changes nothing when the charge was right", 50, 50, kHourUs,
                                     Deny::kNone, 200},
                      LateSettleCase{"within a day", 20, 50, 24 * kHourUs, Deny::kNone, 200},
                      LateSettleCase{"not after a day", 20, 50, 24 * kHourUs + 1, Deny::kClosed,
                                     140},
                      LateSettleCase{"a recovered one charges the missing part", 20, 50, kHourUs,
                                     Deny::kNone, 200, Outcome::kRecovered},
                      LateSettleCase{"a recovered one never refunds", 50, 20, kHourUs, Deny::kNone,
                                     200, Outcome::kRecovered}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST_F(SettleTest, ARecoveredSettleTakesTheLargerOfEachCounter) {
  Credit(10'000);
  const Id open = Open(100, 100), expired = Open(100, 100);
  for (const Id& id : {open, expired}) {
    Heartbeat heartbeat = MakeHeartbeat(id, 1, 90, 30);
    heartbeat.usage.cached = 40;
    ASSERT_TRUE(world.Do(heartbeat).ok);
  }
  // The journal has less output than the last heartbeat, but more of the prompt.
  Settle settle = MakeSettle(open, 100, 20, Outcome::kRecovered);
  EXPECT_EQ(world.Do(settle).charged_nano_usd, 100 + 2 * 30);
  EXPECT_EQ(world.hold(open).usage.cached, 40);
  EXPECT_TRUE(world.Do(settle).ok) << "a repetition is recognized";
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(expired)).ok);
  settle.request_id = expired;
  EXPECT_EQ(world.Do(settle).charged_nano_usd, 100 + 2 * 30);
  EXPECT_EQ(world.Do(settle).charged_nano_usd, 100 + 2 * 30);
}

TEST_F(SettleTest, ARecoveredSettleAfterTheExactOneChangesNothing) {
  Credit(10'000);
  const Id id = Open(100, 100);
  ASSERT_EQ(world.Do(MakeSettle(id, 100, 50)).charged_nano_usd, 200);
  const Reply reply = world.Do(MakeSettle(id, 100, 49, Outcome::kRecovered));
  EXPECT_TRUE(reply.ok) << "the router crashed before it released the slot";
  EXPECT_EQ(reply.charged_nano_usd, 200);
  EXPECT_EQ(world.Do(MakeSettle(id, 100, 49)).denied_by, Deny::kIdReuse);
  const Id free = Open(100, 100);
  ASSERT_TRUE(world.Do(MakeSettle(free, 0, 0, Outcome::kClientGone)).ok);
  EXPECT_TRUE(world.Do(MakeSettle(free, 100, 0, Outcome::kFailedBeforeOutput)).ok);
  EXPECT_EQ(world.Do(MakeSettle(free, 100, 1)).denied_by, Deny::kIdReuse);
}

TEST_F(SettleTest, ALateSettleChargesAtMostTheAvailableCredit) {
  Credit(400);
  const Id id = Open(100, 50);  // 200
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(id)).ok);
  Open(300, 0);  // leaves 100
  EXPECT_EQ(world.Do(MakeSettle(id, 100, 50, Outcome::kRecovered)).charged_nano_usd, 100);
  EXPECT_EQ(world.hold(id).overrun_nano_usd, 100);
}

TEST_F(SettleTest, ACorrectionOfAClosedMonthCountsTowardsTheCurrentOne) {
  world.now_us = UtcMonthStartUs(202512) - kSecondUs;
  Credit(10'000);
  const Id id = Open(100, 100);
  world.now_us += 61 * kSecondUs + 4 * kHourUs;
  ASSERT_TRUE(world.Do(MakeExpire(id)).ok);
  world.now_us += 23 * kHourUs;
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 100, Outcome::kRecovered)).ok);
  EXPECT_EQ(world.state.months[MonthKey("ws", 202511)].spent_nano_usd, 0);
  EXPECT_EQ(world.month().spent_nano_usd, 300);
}

// A router that crashed between the ledger's reply and the release of its slot finds a request
// without delivered output, and releases it.
TEST_F(SettleTest, AReleaseAfterTheSettlementIsNoContradiction) {
  Credit(1000);
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 50)).ok);
  const Reply released = world.Do(MakeSettle(id, 0, 0, Outcome::kFailedBeforeOutput));
  EXPECT_TRUE(released.ok);
  EXPECT_EQ(released.charged_nano_usd, 200);
  EXPECT_TRUE(world.last.entries.empty()) << "the gateway's refusal makes it free";
}

}  // namespace
}  // namespace tollgate::billing
