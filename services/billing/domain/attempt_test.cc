// Decision 52: an abandoned attempt charges nothing, and a call that ended in an error is free, in
// whatever order the operations arrive.
#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kCredit = 10'000;

class AttemptTest : public LedgerTest {
 protected:
  void SetUp() override { Credit(kCredit); }
  Reply Try(Id id, int32_t attempt) {
    Authorize op = MakeAuthorize(id, 100, 100);
    op.attempt = attempt;
    return world.Do(op);
  }
  Settle SettleOf(Id id, int32_t attempt, int64_t completion) {
    Settle op = MakeSettle(id, 100, completion);
    op.attempt = attempt;
    return op;
  }
  int64_t spent() { return kCredit - world.wallet().posted_nano_usd(); }
};

TEST_F(AttemptTest, OperationsOfAnEarlierTryAreRefused) {
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(id, 7, 100, 60)).ok);
  ASSERT_EQ(world.Do(MakeExtend(id, 8, 900)).authorized_nano_usd, 900);
  const Reply second = Try(id, 1);
  ASSERT_TRUE(second.ok);
  EXPECT_EQ(second.authorized_nano_usd, 900) << "reserved by the first attempt";
  EXPECT_EQ(world.hold(id).usage, Usage()) << "output of the first attempt is free";
  EXPECT_EQ(world.Do(MakeHeartbeat(id, 9, 100, 80)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(MakeExtend(id, 10, 2000)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(SettleOf(id, 0, 80)).denied_by, Deny::kClosed);
  EXPECT_EQ(Try(id, 0).denied_by, Deny::kClosed) << "delayed repetition of the first authorize";
  Heartbeat own = MakeHeartbeat(id, 1, 100, 5);
  own.attempt = 1;
  ASSERT_TRUE(world.Do(own).ok);
  EXPECT_EQ(world.hold(id).usage.completion, 5) << "the sequence restarts";
  EXPECT_TRUE(Try(id, 1).ok) << "the reply was lost";
  ASSERT_TRUE(world.Do(SettleOf(id, 1, 10)).ok);
  EXPECT_EQ(spent(), 120);
  EXPECT_EQ(world.Do(SettleOf(id, 0, 80)).denied_by, Deny::kClosed);
  EXPECT_EQ(spent(), 120) << "booked once";
}

TEST_F(AttemptTest, ATryThatAnotherBodyClaimsIsRefused) {
  const Id id = Open();
  Authorize other = MakeAuthorize(id, 100, 101);
  other.attempt = 1;
  EXPECT_EQ(world.Do(other).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.hold(id).attempt, 0);
  other.attempt = -1;
  EXPECT_EQ(world.Do(other).denied_by, Deny::kInvalid);
}

TEST_F(AttemptTest, ANewTryKeepsTheHoldAlive) {
  const Id id = Open();
  world.now_us += world.policy.hold_ttl_us - kSecondUs;
  ASSERT_TRUE(Try(id, 1).ok);
  world.now_us += 2 * kSecondUs;
  EXPECT_EQ(world.Do(MakeExpire(id)).denied_by, Deny::kInvalid) << "not yet";
}

// All orders of four operations: the first attempt settles, the second is authorized, it settles,
// the call is refused. In every order a refused call costs nothing, and at most one attempt is
// charged before the refusal.
TEST_F(AttemptTest, ARefusedCallIsFreeInEveryOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    SCOPED_TRACE(::testing::PrintToString(order));
    const Id id = Open();
    const int64_t before = spent();
    for (const int step : order) {
      if (step == 0) world.Do(SettleOf(id, 0, 30));
      if (step == 1) Try(id, 1);
      if (step == 2) world.Do(SettleOf(id, 1, 20));
      if (step == 3) EXPECT_TRUE(world.Do(MakeVoid(id, true)).ok);
      EXPECT_TRUE(world.last.violations.empty());
      EXPECT_LE(spent() - before, 100 + 2 * 30) << "booked twice";
      EXPECT_TRUE(world.hold(id).state == HoldState::kOpen ||
                  world.hold(id).charged_nano_usd == spent() - before);
    }
    EXPECT_EQ(spent(), before);
    EXPECT_EQ(world.hold(id).charged_nano_usd, 0);
    const Wallet wallet = world.wallet();
    EXPECT_TRUE(world.Do(MakeVoid(id, true)).ok) << "repeated";
    EXPECT_TRUE(world.last.entries.empty()) << "nothing is undone twice";
    for (const int32_t attempt : {0, 1}) {
      EXPECT_EQ(world.Do(SettleOf(id, attempt, 40)).denied_by, Deny::kClosed);
    }
    EXPECT_EQ(world.wallet().head, wallet.head);
    EXPECT_EQ(world.month().spent_nano_usd, before);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Without a refusal, the answer of the live attempt is charged once.
TEST_F(AttemptTest, AnAnswerOfTheSecondTryIsChargedOnceInEveryOrder) {
  const Id first = Open();
  ASSERT_TRUE(Try(first, 1).ok);
  ASSERT_TRUE(world.Do(SettleOf(first, 1, 20)).ok);
  EXPECT_EQ(world.Do(SettleOf(first, 0, 30)).denied_by, Deny::kClosed);
  EXPECT_EQ(spent(), 140);
  const Id second = Open();
  ASSERT_TRUE(Try(second, 1).ok);
  EXPECT_EQ(world.Do(SettleOf(second, 0, 30)).denied_by, Deny::kClosed);
  ASSERT_TRUE(world.Do(SettleOf(second, 1, 20)).ok);
  EXPECT_EQ(spent(), 280);
  // The first attempt was settled: a second one cannot begin, so the gateway refuses the call.
  const Id third = Open();
  ASSERT_TRUE(world.Do(SettleOf(third, 0, 30)).ok);
  EXPECT_EQ(Try(third, 1).denied_by, Deny::kClosed);
}

TEST_F(AttemptTest, ARefusalUndoesAnExpiredCharge) {
  const Id charged = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(charged, 1, 100, 30)).ok);
  const Id silent = Open();
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(charged)).ok);
  ASSERT_TRUE(world.Do(MakeExpire(silent)).ok);
  EXPECT_EQ(spent(), 160);
  for (const Id& id : {charged, silent}) {
    EXPECT_TRUE(world.Do(MakeVoid(id, true)).ok);
    EXPECT_EQ(world.Do(MakeSettle(id, 100, 50)).denied_by, Deny::kClosed)
        << "the router comes back later";
    EXPECT_EQ(world.hold(id).state, HoldState::kCorrected);
  }
  EXPECT_EQ(spent(), 0);
}

TEST_F(AttemptTest, ARefusalUndoesALateSettlement) {
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeHeartbeat(id, 1, 100, 30)).ok);
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(id)).ok);
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 50)).ok);
  EXPECT_EQ(spent(), 200);
  EXPECT_TRUE(world.Do(MakeVoid(id, true)).ok);
  EXPECT_EQ(spent(), 0);
}

TEST_F(AttemptTest, ARefusalUndoesTheOperatorsPartToo) {
  Credit(1, true);
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 9'000)).ok);
  EXPECT_EQ(world.wallet().posted_nano_usd(), 0);
  EXPECT_GT(world.hold(id).overrun_nano_usd, 0);
  EXPECT_TRUE(world.Do(MakeVoid(id, true)).ok);
  EXPECT_EQ(world.hold(id).overrun_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, kCredit);
  EXPECT_EQ(world.wallet().granted_nano_usd, 1) << "granted credit is returned as granted";
}

TEST_F(AttemptTest, ARefusalAfterTheWindowOfLateSettlementsIsRefused) {
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 50)).ok);
  world.now_us += world.policy.late_settle_us + kSecondUs;
  EXPECT_EQ(world.Do(MakeVoid(id, true)).denied_by, Deny::kClosed);
  EXPECT_EQ(spent(), 200);
}

TEST_F(AttemptTest, AVoidThatIsNoRefusalUndoesNothing) {
  const Id id = Open();
  ASSERT_TRUE(world.Do(MakeSettle(id, 100, 50)).ok);
  EXPECT_EQ(world.Do(MakeVoid(id)).denied_by, Deny::kClosed);
  EXPECT_EQ(spent(), 200);
}

}  // namespace
}  // namespace tollgate::billing
