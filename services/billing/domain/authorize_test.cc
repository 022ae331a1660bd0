#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using AuthorizeTest = LedgerTest;

struct AuthorizeCase {
  const char* rule;
  int64_t paid_nano_usd;
  std::optional<int64_t> cap_nano_usd;
  int64_t held_nano_usd;  // by another request
  int64_t prompt;
  int64_t output;
  Deny denied_by;
  int64_t authorized_nano_usd;
};

class AuthorizeRulesTest : public ::testing::TestWithParam<AuthorizeCase> {};

TEST_P(AuthorizeRulesTest, Rule) {
  const AuthorizeCase& c = GetParam();
  World world;
  if (c.paid_nano_usd > 0) ASSERT_TRUE(world.Do(MakeAddCredit("credit", c.paid_nano_usd)).ok);
  if (c.held_nano_usd > 0)
    ASSERT_TRUE(world.Do(MakeAuthorize(world.NewId(), c.held_nano_usd, 0)).ok);
  if (c.cap_nano_usd) ASSERT_TRUE(world.Do(MakeSetCap("cap", c.cap_nano_usd)).ok);
  const Reply reply = world.Do(MakeAuthorize(world.NewId(), c.prompt, c.output));
  EXPECT_EQ(reply.denied_by, c.denied_by);
  EXPECT_EQ(reply.ok, c.denied_by == Deny::kNone);
  EXPECT_EQ(reply.authorized_nano_usd, c.authorized_nano_usd);
  EXPECT_EQ(reply.retry_after_ms, c.denied_by == Deny::kHeld ? 1000 : 0);
  EXPECT_EQ(reply.slice_nano_usd, reply.ok ? 8192 : 0);
  EXPECT_EQ(world.wallet().held_nano_usd, c.held_nano_usd + c.authorized_nano_usd);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, AuthorizeRulesTest,
    ::testing::Values(
        AuthorizeCase{"small request in full", 10'000, {}, 0, 100, 50, Deny::kNone, 200},
        AuthorizeCase{"first slice of output only", 100'000, {}, 0, 100, 50'000, Deny::kNone, 8292},
        AuthorizeCase{"unknown workspace", 0, {}, 0, 100, 50, Deny::kNoCredit, 0},
        AuthorizeCase{"shrinks to the credit", 150, {}, 0, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"covers just the input and one token", 102, {}, 0, 100, 50, Deny::kNone, 102},
        AuthorizeCase{"below the input and one token", 101, {}, 0, 100, 50, Deny::kNoCredit, 0},
        AuthorizeCase{
            "input only when no output is requested", 100, {}, 0, 100, 0, Deny::kNone, 100},
        AuthorizeCase{"held by other requests", 300, {}, 250, 100, 50, Deny::kHeld, 0},
        AuthorizeCase{"shrinks to what others leave", 400, {}, 250, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"cap zero", 1000, 0, 0, 100, 50, Deny::kCap, 0},
        AuthorizeCase{"cap below the input and one token", 1000, 101, 0, 100, 50, Deny::kCap, 0},
        AuthorizeCase{"shrinks to the cap", 1000, 150, 0, 100, 50, Deny::kNone, 150},
        AuthorizeCase{"cap held by other requests", 1000, 300, 250, 100, 50, Deny::kHeld, 0},
        AuthorizeCase{"cap below the held amount", 1000, 200, 250, 100, 50, Deny::kHeld, 0}),
    [](const auto& info) {
      std::string name = info.param.rule;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST_F(AuthorizeTest, HeldCreditCanBeReportedAsNoCredit) {
  world.policy.held_is_no_credit = true;
  Credit(200);
  Open(100, 50);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 100, 50)).denied_by, Deny::kNoCredit);
}

TEST_F(AuthorizeTest, HoldsRoundUpAndChargesRoundDown) {
  Credit(1000);
  Authorize op = MakeAuthorize(world.NewId(), 1, 1);
  op.rates = {37, 41};
  EXPECT_EQ(world.Do(op).authorized_nano_usd, 1);
  const Reply settled = world.Do(MakeSettle(op.request_id, 1, 1));
  EXPECT_TRUE(settled.ok);
  EXPECT_EQ(settled.charged_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
}

TEST_F(AuthorizeTest, AFreeModelNeedsCreditButCostsNothing) {
  Authorize op = MakeAuthorize(world.NewId(), 100, 100);
  op.rates = {0, 0};
  EXPECT_EQ(world.Do(op).denied_by, Deny::kNoCredit);
  Credit(1);
  EXPECT_TRUE(world.Do(op).ok);
  EXPECT_EQ(world.wallet().held_nano_usd, 0);
  EXPECT_TRUE(world.Do(MakeSettle(op.request_id, 100, 50)).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1);
}

TEST_F(AuthorizeTest, ARepeatedAuthorizeGetsTheFirstReply) {
  Credit(10'000);
  const Id id = world.NewId();
  const Authorize op = MakeAuthorize(id, 100, 50);
  const Reply first = world.Do(op);
  ASSERT_TRUE(world.Do(MakeExtend(id, 1, 500)).ok);
  EXPECT_EQ(world.Do(op), first);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(world.wallet().held_nano_usd, 500);
}

TEST_F(AuthorizeTest, IdsOlderThanSevenDaysOrMoreThanADayAheadAreRefused) {
  Credit(1000);
  const int64_t day = 24 * kHourUs;
  EXPECT_TRUE(world.Do(MakeAuthorize(TestId(3, world.now_us + day - kSecondUs), 1, 1)).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(TestId(4, world.now_us + day + kSecondUs), 1, 1)).denied_by,
            Deny::kClock);
  const int64_t week = 7 * 24 * kHourUs;
  EXPECT_TRUE(world.Do(MakeAuthorize(TestId(1, world.now_us - week + kSecondUs), 1, 1)).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(TestId(2, world.now_us - week - kSecondUs), 1, 1)).denied_by,
            Deny::kClock);
  EXPECT_EQ(world.Do(MakeVoid(TestId(2, world.now_us - week - kSecondUs))).denied_by,
            Deny::kInvalid);
}

TEST_F(AuthorizeTest, ARequestCountsTowardsTheMonthOfItsAdmission) {
  const int64_t december = UtcMonthStartUs(202512);
  world.now_us = december - kSecondUs;
  Credit(10'000);
  ASSERT_TRUE(world.Do(MakeSetCap("cap", 500)).ok);
  const Id id = Open(100, 100);  // 300
  world.now_us = december + kSecondUs;
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 500, 0)).authorized_nano_usd, 500)
      << "a new month";
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 100)).ok);
  EXPECT_EQ(world.state.months[MonthKey("ws", 202511)].spent_nano_usd, 300);
  EXPECT_EQ(world.month().spent_nano_usd, 0);
  EXPECT_EQ(world.month().held_nano_usd, 500);
}

}  // namespace
}  // namespace tollgate::billing
