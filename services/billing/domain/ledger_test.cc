// One test per rule of reliability.md 1.2-1.7 and decisions.md 1-10.
#include "services/billing/domain/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/domain/chain.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kHour = 3600 * kSecond;

class LedgerTest : public ::testing::Test {
 protected:
  // Every operation leaves the books in order.
  void TearDown() override {
    EXPECT_TRUE(world.last.violations.empty());
    int64_t held = 0;
    int64_t open = 0;
    for (const auto& [id, hold] : world.state.holds) {
      if (hold.state != HoldState::kOpen) continue;
      held += hold.authorized;
      ++open;
    }
    EXPECT_EQ(world.wallet().held, held);
    EXPECT_EQ(world.wallet().open_holds, open);
  }
  void Credit(int64_t amount, bool granted = false) {
    ASSERT_TRUE(world.Do(CreditOp("c" + std::to_string(++commands), amount, granted)).ok);
  }
  Id Open(int64_t prompt = 100, int64_t output = 100) {
    const Id id = world.NewId();
    EXPECT_TRUE(world.Do(AuthorizeOp(id, prompt, output)).ok);
    return id;
  }
  World world;
  int commands = 0;
};

// --- Authorize: how much ------------------------------------------------------------------------

struct AuthorizeCase {
  const char* rule;
  int64_t paid;
  std::optional<int64_t> cap;
  int64_t held;  // by another request
  int64_t prompt;
  int64_t output;
  Deny denied_by;
  int64_t authorized;
};

class AuthorizeTest : public ::testing::TestWithParam<AuthorizeCase> {};

TEST_P(AuthorizeTest, Rule) {
  const AuthorizeCase& c = GetParam();
  World world;
  if (c.paid > 0) ASSERT_TRUE(world.Do(CreditOp("credit", c.paid)).ok);
  if (c.held > 0) ASSERT_TRUE(world.Do(AuthorizeOp(world.NewId(), c.held, 0)).ok);
  if (c.cap) ASSERT_TRUE(world.Do(CapOp("cap", c.cap)).ok);
  const Reply reply = world.Do(AuthorizeOp(world.NewId(), c.prompt, c.output));
  EXPECT_EQ(reply.denied_by, c.denied_by);
  EXPECT_EQ(reply.ok, c.denied_by == Deny::kNone);
  EXPECT_EQ(reply.authorized, c.authorized);
  EXPECT_EQ(reply.retry_after_ms, c.denied_by == Deny::kHeld ? 1000 : 0);
  EXPECT_EQ(reply.slice, reply.ok ? 8192 : 0);
  EXPECT_EQ(world.wallet().held, c.held + c.authorized);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, AuthorizeTest,
    ::testing::Values(
        AuthorizeCase{"small request whole", 10'000, {}, 0, 100, 50, Deny::kNone, 200},
        AuthorizeCase{"first slice of output only", 100'000, {}, 0, 100, 50'000, Deny::kNone, 8292},
        AuthorizeCase{"unknown workspace", 0, {}, 0, 100, 50, Deny::kNoCredit, 0},
        AuthorizeCase{"shrink to fit", 150, {}, 0, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"input and one token just fit", 102, {}, 0, 100, 50, Deny::kNone, 102},
        AuthorizeCase{"below input and one token", 101, {}, 0, 100, 50, Deny::kNoCredit, 0},
        AuthorizeCase{
            "input alone when no output is asked for", 100, {}, 0, 100, 0, Deny::kNone, 100},
        AuthorizeCase{"held by others", 300, {}, 250, 100, 50, Deny::kHeld, 0},
        AuthorizeCase{"shrinks beside others", 400, {}, 250, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"cap zero", 1000, 0, 0, 100, 50, Deny::kCap, 0},
        AuthorizeCase{"cap below the least", 1000, 101, 0, 100, 50, Deny::kCap, 0},
        AuthorizeCase{"shrinks to the cap", 1000, 150, 0, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"cap held by others", 1000, 300, 250, 100, 50, Deny::kHeld, 0},
        AuthorizeCase{"cap below what is held", 1000, 200, 250, 100, 50, Deny::kHeld, 0}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST_F(LedgerTest, HeldCanBeAnsweredAsNoCredit) {
  world.policy.held_is_no_credit = true;
  Credit(200);
  Open(100, 50);
  EXPECT_EQ(world.Do(AuthorizeOp(world.NewId(), 100, 50)).denied_by, Deny::kNoCredit);
}

TEST_F(LedgerTest, HoldsRoundUpAndChargesRoundDown) {
  Credit(1000);
  Op op = AuthorizeOp(world.NewId(), 1, 1);
  op.rates = {37, 41};
  EXPECT_EQ(world.Do(op).authorized, 1);
  const Reply settled = world.Do(SettleOp(op.id, 1, 1));
  EXPECT_TRUE(settled.ok);
  EXPECT_EQ(settled.charged, 0);
  EXPECT_EQ(world.wallet().paid, 1000);
}

TEST_F(LedgerTest, AFreeModelNeedsCreditButTakesNone) {
  Op op = AuthorizeOp(world.NewId(), 100, 100);
  op.rates = {0, 0};
  EXPECT_EQ(world.Do(op).denied_by, Deny::kNoCredit);
  Credit(1);
  EXPECT_TRUE(world.Do(op).ok);
  EXPECT_EQ(world.wallet().held, 0);
  EXPECT_TRUE(world.Do(SettleOp(op.id, 100, 50)).ok);
  EXPECT_EQ(world.wallet().paid, 1);
}

TEST_F(LedgerTest, NonsenseIsInvalid) {
  Credit(1000);
  std::vector<Op> bad;
  bad.push_back(AuthorizeOp(Id(), 1, 1));
  bad.push_back(AuthorizeOp(world.NewId(), -1, 1));
  bad.push_back(AuthorizeOp(world.NewId(), 1, -1));
  bad.push_back(AuthorizeOp(world.NewId(), INT64_MAX, 1));
  bad.push_back(AuthorizeOp(world.NewId(), 1, 1, ""));
  bad.push_back(AuthorizeOp(world.NewId(), 1, 1, "a:b"));
  bad.push_back(AuthorizeOp(world.NewId(), 1, 1));
  bad.back().rates.output_pico_usd = -1;
  bad.push_back(AuthorizeOp(world.NewId(), 1, 1));
  bad.back().rates.output_pico_usd = INT64_MAX;
  bad.push_back(CreditOp("x", 0));
  bad.push_back(CreditOp("x", -5));
  bad.push_back(CreditOp("x", INT64_MAX));
  bad.push_back(CreditOp("", 5));
  bad.push_back(CapOp("x", -1));
  bad.push_back(HeartbeatOp(world.NewId(), 1, 1, 1));  // unknown
  bad.push_back(SettleOp(world.NewId(), 1, 1));
  bad.push_back(ExpireOp(world.NewId()));
  bad.push_back(VoidOp(Id()));
  const Id open = Open();
  bad.push_back(SettleOp(open, -1, 1));
  bad.push_back(SettleOp(open, 1, INT64_MAX));
  bad.push_back(SettleOp(open, 1, 1, Outcome::kNone));
  bad.push_back(HeartbeatOp(open, 1, 1, -1));
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(world.Do(bad[i]).denied_by, Deny::kInvalid) << i;
    EXPECT_TRUE(world.last.entries.empty()) << i;
  }
}

TEST_F(LedgerTest, IdsOlderThanSevenDaysAreRefused) {
  Credit(1000);
  const int64_t week = 7 * 24 * kHour;
  EXPECT_TRUE(world.Do(AuthorizeOp(TestId(1, world.now_us - week + kSecond), 1, 1)).ok);
  EXPECT_EQ(world.Do(AuthorizeOp(TestId(2, world.now_us - week - kSecond), 1, 1)).denied_by,
            Deny::kInvalid);
  EXPECT_EQ(world.Do(VoidOp(TestId(2, world.now_us - week - kSecond))).denied_by, Deny::kInvalid);
}

// --- Idempotency ---------------------------------------------------------------------------------

TEST_F(LedgerTest, TheSameAuthorizeGetsItsFirstAnswer) {
  Credit(10'000);
  const Id id = world.NewId();
  const Op op = AuthorizeOp(id, 100, 50);
  const Reply first = world.Do(op);
  ASSERT_TRUE(world.Do(ExtendOp(id, 1, 500)).ok);
  EXPECT_EQ(world.Do(op), first);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(world.wallet().held, 500);
}

TEST_F(LedgerTest, AnotherBodyUnderOneIdIsReuse) {
  Credit(10'000);
  const Id id = Open(100, 50);
  Op other = AuthorizeOp(id, 100, 51);
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
  other = AuthorizeOp(id, 100, 50);
  other.key_id = "other";
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(AuthorizeOp(id, 100, 50, "other")).denied_by, Deny::kIdReuse);
  Op settle = SettleOp(id, 1, 1);
  settle.workspace = "other";
  EXPECT_EQ(world.Do(settle).denied_by, Deny::kIdReuse);
  ASSERT_TRUE(world.Do(SettleOp(id, 10, 10)).ok);
  EXPECT_EQ(world.Do(SettleOp(id, 10, 11)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.wallet().paid, 10'000 - 30);
}

TEST_F(LedgerTest, ASettleCountsOnceHoweverOftenItComes) {
  Credit(10'000);
  const Id id = Open();
  const Reply first = world.Do(SettleOp(id, 100, 10));
  EXPECT_EQ(first.charged, 120);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(world.Do(SettleOp(id, 100, 10)), first);
  EXPECT_EQ(world.wallet().paid, 9880);
}

TEST_F(LedgerTest, CommandsCountOnce) {
  ASSERT_TRUE(world.Do(CreditOp("a", 100)).ok);
  const Reply again = world.Do(CreditOp("a", 100));
  EXPECT_TRUE(again.ok);
  EXPECT_EQ(again.balance.paid, 100);
  EXPECT_EQ(world.Do(CreditOp("a", 101)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(CreditOp("a", 100, true)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.Do(CapOp("a", 5)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.wallet().paid, 100);
}

// --- While it runs -------------------------------------------------------------------------------

TEST_F(LedgerTest, ExtendsGrowAsFarAsTheMoneyGoes) {
  Credit(1000);
  const Id id = Open(100, 50);  // 200
  Reply reply = world.Do(ExtendOp(id, 1, 700));
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.authorized, 700);
  const Id other = Open(100, 50);
  reply = world.Do(ExtendOp(id, 2, 1000));
  EXPECT_FALSE(reply.ok);
  EXPECT_EQ(reply.authorized, 800);
  EXPECT_EQ(reply.denied_by, Deny::kHeld);
  reply = world.Do(ExtendOp(id, 3, 1001));
  EXPECT_EQ(reply.denied_by, Deny::kNoCredit);
  ASSERT_TRUE(world.Do(VoidOp(other)).ok);
  EXPECT_TRUE(world.Do(ExtendOp(id, 4, 1000)).ok);
}

TEST_F(LedgerTest, OldSequencesChangeNothing) {
  Credit(10'000);
  const Id id = Open();
  ASSERT_TRUE(world.Do(HeartbeatOp(id, 5, 100, 50)).ok);
  EXPECT_TRUE(world.Do(HeartbeatOp(id, 5, 100, 90)).ok);
  EXPECT_TRUE(world.Do(HeartbeatOp(id, 4, 100, 90)).ok);
  EXPECT_EQ(world.hold(id).usage.completion, 50);
  const Reply late = world.Do(ExtendOp(id, 3, 5000));
  EXPECT_FALSE(late.ok);
  EXPECT_EQ(late.authorized, 300);
}

TEST_F(LedgerTest, UsageNeverGoesBack) {
  Credit(10'000);
  const Id id = Open();
  world.Do(HeartbeatOp(id, 1, 100, 50));
  world.Do(HeartbeatOp(id, 2, 100, 40));
  EXPECT_EQ(world.hold(id).usage.completion, 50);
}

// --- The end ------------------------------------------------------------------------------------

TEST_F(LedgerTest, GrantedCreditBurnsFirst) {
  Credit(1000);
  Credit(100, /*granted=*/true);
  ASSERT_TRUE(world.Do(SettleOp(Open(), 60, 0)).ok);
  EXPECT_EQ(world.wallet().granted, 40);
  EXPECT_EQ(world.wallet().paid, 1000);
  ASSERT_TRUE(world.Do(SettleOp(Open(), 60, 0)).ok);
  EXPECT_EQ(world.wallet().granted, 0);
  EXPECT_EQ(world.wallet().paid, 980);
}

TEST_F(LedgerTest, AFailureBeforeOutputCostsNothing) {
  Credit(1000);
  const Id id = Open();
  const Op settle = SettleOp(id, 100, 0, Outcome::kFailedBeforeOutput);
  const Reply reply = world.Do(settle);
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.charged, 0);
  EXPECT_EQ(world.hold(id).state, HoldState::kVoided);
  EXPECT_EQ(world.Do(settle), reply);
  const Id other = Open();
  EXPECT_EQ(world.Do(SettleOp(other, 0, 0, Outcome::kClientGone)).charged, 0);
  EXPECT_EQ(world.wallet().paid, 1000);
}

TEST_F(LedgerTest, CostBeyondTheHoldIsExtendedOnceMoreThenTheOperators) {
  Credit(1000);
  const Id roomy = Open(100, 50);  // 200
  EXPECT_EQ(world.Do(SettleOp(roomy, 100, 100)).charged, 300);
  EXPECT_EQ(world.hold(roomy).overrun, 0);
  const Id tight = Open(100, 50);
  const Id other = Open(400, 0);  // leaves 100
  EXPECT_EQ(world.Do(SettleOp(tight, 100, 200)).charged, 300);
  EXPECT_EQ(world.hold(tight).overrun, 200);
  EXPECT_EQ(world.wallet().paid, 400);
  EXPECT_EQ(world.wallet().available(), 0);
  EXPECT_TRUE(world.Do(SettleOp(other, 400, 0)).ok);
}

TEST_F(LedgerTest, VoidsGiveEverythingBackAndSettlesThenComeTooLate) {
  Credit(1000);
  const Id id = Open();
  EXPECT_TRUE(world.Do(VoidOp(id)).ok);
  EXPECT_TRUE(world.Do(VoidOp(id)).ok);
  EXPECT_EQ(world.Do(SettleOp(id, 100, 10)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(HeartbeatOp(id, 1, 1, 1)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(AuthorizeOp(id, 100, 100)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().available(), 1000);
  const Id settled = Open();
  ASSERT_TRUE(world.Do(SettleOp(settled, 10, 0)).ok);
  const Reply late = world.Do(VoidOp(settled));
  EXPECT_EQ(late.denied_by, Deny::kClosed);
  EXPECT_EQ(late.charged, 10);
}

TEST_F(LedgerTest, AVoidThatComesFirstLeavesATombstone) {
  Credit(1000);
  const Id id = world.NewId();
  EXPECT_TRUE(world.Do(VoidOp(id)).ok);
  EXPECT_EQ(world.Do(AuthorizeOp(id, 100, 100)).denied_by, Deny::kClosed);
  EXPECT_TRUE(world.Do(VoidOp(id)).ok);
  EXPECT_EQ(world.wallet().held, 0);
}

TEST_F(LedgerTest, HoldsExpireAtTheirLastSignOfLife) {
  Credit(10'000);
  const Id silent = Open();
  const Id alive = Open();
  EXPECT_FALSE(world.Do(ExpireOp(silent)).ok);  // not yet
  world.now_us += 59 * kSecond;
  ASSERT_TRUE(world.Do(HeartbeatOp(alive, 1, 100, 20)).ok);
  world.now_us += 2 * kSecond;
  EXPECT_TRUE(world.Do(ExpireOp(silent)).ok);
  EXPECT_EQ(world.hold(silent).state, HoldState::kExpiredVoid);
  EXPECT_FALSE(world.Do(ExpireOp(alive)).ok);
  world.now_us += 60 * kSecond;
  const Reply expired = world.Do(ExpireOp(alive));
  EXPECT_TRUE(expired.ok);
  EXPECT_EQ(expired.charged, 140);
  EXPECT_EQ(world.hold(alive).state, HoldState::kExpiredCharged);
  EXPECT_EQ(world.Do(ExpireOp(alive)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().paid, 9860);
}

TEST_F(LedgerTest, AHoldExpiresAtItsTimeAndNotOneMicrosecondEarlier) {
  Credit(1000);
  const Id id = Open();
  world.now_us += world.policy.hold_ttl_us - 1;
  EXPECT_FALSE(world.Do(ExpireOp(id)).ok);
  world.now_us += 1;
  EXPECT_TRUE(world.Do(ExpireOp(id)).ok);
}

TEST_F(LedgerTest, PartsAreNoLargerThanTheirWhole) {
  Credit(1000);
  Op settle = SettleOp(Open(), 10, 5);
  settle.usage.cached = 11;
  settle.usage.cache_write = 12;
  settle.usage.reasoning = 6;
  const Reply first = world.Do(settle);
  EXPECT_TRUE(first.ok);
  const Usage& kept = world.hold(settle.id).usage;
  EXPECT_EQ(kept.cached, 10);
  EXPECT_EQ(kept.cache_write, 10);
  EXPECT_EQ(kept.reasoning, 5);
  EXPECT_EQ(world.Do(settle), first) << "and its repetition is known as the same";
}

TEST_F(LedgerTest, AHoldLivesADayAtMost) {
  Credit(10'000);
  const Id id = Open();
  for (int i = 1; i <= 24 * 60 + 1; ++i) {
    world.now_us += 59 * kSecond;
    world.Do(HeartbeatOp(id, i, 100, 1));
  }
  world.now_us = world.hold(id).created_us + 24 * kHour;
  EXPECT_TRUE(world.Do(ExpireOp(id)).ok);
}

struct LateCase {
  const char* rule;
  int64_t heartbeat;  // output tokens last reported, -1: never
  int64_t settled;    // output tokens of the late settle
  int64_t after_us;
  Deny denied_by;
  int64_t charged;
};
class LateTest : public ::testing::TestWithParam<LateCase> {};

TEST_P(LateTest, Rule) {
  const LateCase& c = GetParam();
  World world;
  ASSERT_TRUE(world.Do(CreditOp("c", 10'000)).ok);
  const Id id = world.NewId();
  ASSERT_TRUE(world.Do(AuthorizeOp(id, 100, 100)).ok);
  if (c.heartbeat >= 0) ASSERT_TRUE(world.Do(HeartbeatOp(id, 1, 100, c.heartbeat)).ok);
  world.now_us += 61 * kSecond;
  ASSERT_TRUE(world.Do(ExpireOp(id)).ok);
  world.now_us += c.after_us;
  const Op settle = SettleOp(id, 100, c.settled, Outcome::kRecovered);
  const Reply reply = world.Do(settle);
  EXPECT_EQ(reply.denied_by, c.denied_by);
  EXPECT_EQ(reply.charged, c.charged);
  EXPECT_EQ(world.wallet().paid, 10'000 - c.charged);
  EXPECT_EQ(world.wallet().held, 0);
  EXPECT_EQ(world.Do(settle), reply);
  if (reply.ok) {
    EXPECT_EQ(world.Do(SettleOp(id, 100, c.settled + 1)).denied_by, Deny::kIdReuse) << "only once";
  }
}
INSTANTIATE_TEST_SUITE_P(
    Rules, LateTest,
    ::testing::Values(LateCase{"adds what was missing", 20, 50, kHour, Deny::kNone, 200},
                      LateCase{"charges what was voided", -1, 50, kHour, Deny::kNone, 200},
                      LateCase{"returns what was too much", 50, 20, kHour, Deny::kNone, 140},
                      LateCase{"changes nothing when it was right", 50, 50, kHour, Deny::kNone,
                               200},
                      LateCase{"within a day", 20, 50, 24 * kHour, Deny::kNone, 200},
                      LateCase{"not after a day", 20, 50, 24 * kHour + 1, Deny::kClosed, 140}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST_F(LedgerTest, ALateSettleTakesNoMoreThanThereIs) {
  Credit(400);
  const Id id = Open(100, 50);  // 200
  world.now_us += 61 * kSecond;
  ASSERT_TRUE(world.Do(ExpireOp(id)).ok);
  Open(300, 0);  // leaves 100
  EXPECT_EQ(world.Do(SettleOp(id, 100, 50, Outcome::kRecovered)).charged, 100);
  EXPECT_EQ(world.hold(id).overrun, 100);
}

// --- Caps and months ----------------------------------------------------------------------------

TEST_F(LedgerTest, LoweringTheCapStopsNewRequestsAndSparesRunningOnes) {
  Credit(10'000);
  ASSERT_TRUE(world.Do(CapOp("cap1", 1000)).ok);
  const Id id = Open(100, 50);
  ASSERT_TRUE(world.Do(CapOp("cap2", 100)).ok);
  EXPECT_EQ(world.Do(AuthorizeOp(world.NewId(), 100, 50)).denied_by, Deny::kCap);
  EXPECT_TRUE(world.Do(ExtendOp(id, 1, 600)).ok);
  EXPECT_EQ(world.Do(SettleOp(id, 100, 250)).charged, 600);
  EXPECT_EQ(world.Do(AuthorizeOp(world.NewId(), 10, 1)).denied_by, Deny::kCap);
  ASSERT_TRUE(world.Do(CapOp("cap3", 1000)).ok);
  EXPECT_TRUE(world.Do(AuthorizeOp(world.NewId(), 100, 50)).ok) << "raising acts at once";
}

TEST_F(LedgerTest, TheCapBoundsExtends) {
  Credit(10'000);
  ASSERT_TRUE(world.Do(CapOp("cap", 500)).ok);
  const Id id = Open(100, 50);
  const Reply reply = world.Do(ExtendOp(id, 1, 600));
  EXPECT_EQ(reply.authorized, 500);
  EXPECT_EQ(reply.denied_by, Deny::kCap);
}

TEST_F(LedgerTest, ARequestBelongsToTheMonthOfItsAdmission) {
  const int64_t december = UtcMonthStartUs(202512);
  world.now_us = december - kSecond;
  Credit(10'000);
  ASSERT_TRUE(world.Do(CapOp("cap", 500)).ok);
  const Id id = Open(100, 100);  // 300
  world.now_us = december + kSecond;
  EXPECT_EQ(world.Do(AuthorizeOp(world.NewId(), 500, 0)).authorized, 500) << "a new month";
  ASSERT_TRUE(world.Do(SettleOp(id, 100, 100)).ok);
  EXPECT_EQ(world.state.months[MonthKey("ws", 202511)].spent, 300);
  EXPECT_EQ(world.month().spent, 0);
  EXPECT_EQ(world.month().held, 500);
}

TEST_F(LedgerTest, AClosedMonthIsCorrectedInTheCurrentOne) {
  world.now_us = UtcMonthStartUs(202512) - kSecond;
  Credit(10'000);
  const Id id = Open(100, 100);
  world.now_us += 61 * kSecond + 4 * kHour;
  ASSERT_TRUE(world.Do(ExpireOp(id)).ok);
  world.now_us += 23 * kHour;
  ASSERT_TRUE(world.Do(SettleOp(id, 100, 100, Outcome::kRecovered)).ok);
  EXPECT_EQ(world.state.months[MonthKey("ws", 202511)].spent, 0);
  EXPECT_EQ(world.month().spent, 300);
}

TEST_F(LedgerTest, TheBooksNeverRunBackwards) {
  world.now_us = UtcMonthStartUs(202512) + kSecond;
  Credit(10'000);
  world.now_us -= 5 * kSecond;
  const Id id = Open();
  EXPECT_EQ(world.hold(id).month, 202512);
  EXPECT_EQ(world.last.entries.front().at_us, UtcMonthStartUs(202512) + kSecond);
}

// --- Books --------------------------------------------------------------------------------------

TEST_F(LedgerTest, EntriesFormAChainWithoutGaps) {
  std::vector<Entry> entries;
  const auto run = [&](const Op& op) {
    world.Do(op);
    entries.insert(entries.end(), world.last.entries.begin(), world.last.entries.end());
  };
  run(CreditOp("c", 1000));
  const Id id = world.NewId();
  run(AuthorizeOp(id, 100, 50));
  run(SettleOp(id, 100, 10));
  std::string head(32, '\0');
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].sequence, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(entries[i].hash, EntryHash(head, entries[i]));
    head = entries[i].hash;
  }
  EXPECT_EQ(world.wallet().head, head);
  ASSERT_EQ(entries.size(), 4U);  // topup, hold, settle, charge
  Entry changed = entries[1];
  ++changed.amount;
  EXPECT_NE(EntryHash(entries[0].hash, changed), entries[1].hash);
}

TEST_F(LedgerTest, ABatchGrantsAPrefixAndDeniesTheRest) {
  Credit(500);
  std::vector<Op> ops;
  for (int i = 0; i < 4; ++i) ops.push_back(AuthorizeOp(world.NewId(), 100, 50));
  world.last = Apply(world.state, ops, world.now_us, world.policy);
  EXPECT_EQ(world.last.replies[0].authorized, 200);
  EXPECT_EQ(world.last.replies[1].authorized, 200);
  EXPECT_EQ(world.last.replies[2].denied_by, Deny::kHeld);
  EXPECT_EQ(world.last.replies[3].denied_by, Deny::kHeld);
  EXPECT_EQ(world.last.new_holds.size(), 2U);
  EXPECT_EQ(world.last.wallets.size(), 1U);
}

TEST_F(LedgerTest, ABrokenInvariantIsRefusedAndReportedAndChangesNothing) {
  Credit(1000);
  const Id id = Open(100, 50);
  // As if the table had been tampered with: more is held than there is credit.
  Wallet& wallet = world.state.wallets.at("ws");
  const Wallet sound = wallet;
  wallet.paid = 50;
  const Wallet broken = wallet;
  const Reply reply = world.Do(SettleOp(id, 100, 50));
  EXPECT_EQ(reply.denied_by, Deny::kInvalid);
  EXPECT_EQ(world.last.violations.size(), 1U);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_TRUE(world.last.changed_holds.empty());
  EXPECT_EQ(world.hold(id).state, HoldState::kOpen);
  EXPECT_EQ(wallet.sequence, broken.sequence);
  EXPECT_EQ(wallet.head, broken.head);
  EXPECT_EQ(wallet.paid, 50);
  wallet = sound;
  world.last = {};
}

}  // namespace
}  // namespace tollgate::billing
