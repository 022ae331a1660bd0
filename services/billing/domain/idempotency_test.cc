// Decisions 43 and 59: the same Idempotency-Key and body within 24 h are never billed twice.
#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

const std::string kBody(32, 'b');

class IdempotencyTest : public LedgerTest {
 protected:
  void SetUp() override { Credit(1'000'000); }

  Authorize Ask(char key = 'k', const std::string& body = kBody) {
    Authorize op = MakeAuthorize(world.NewId(), 100, 100);
    op.idempotency_key_digest = std::string(32, key);
    op.idempotency_body_digest = body;
    return op;
  }
  Id OpenWithKey() {
    const Authorize ask = Ask();
    EXPECT_TRUE(world.Do(ask).ok);
    return ask.request_id;
  }
  Deny Again() { return world.Do(Ask()).denied_by; }
};

TEST_F(IdempotencyTest, WhileTheFirstRequestRunsARepetitionMustWait) {
  const Id first = OpenWithKey();
  const Reply reply = world.Do(Ask());
  EXPECT_EQ(reply.denied_by, Deny::kIdempotencyRunning);
  EXPECT_EQ(reply.retry_after_ms, 1000);
  EXPECT_EQ(world.wallet().open_holds, 1);
  EXPECT_EQ(world.last.idempotency_keys.size(), 0u);
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
}

TEST_F(IdempotencyTest, AnAnsweredRequestIsNotRunAgain) {
  const Id first = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
  const int64_t paid = world.wallet().paid_nano_usd;
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
  EXPECT_EQ(world.wallet().paid_nano_usd, paid);
  EXPECT_EQ(world.wallet().open_holds, 0);
}

TEST_F(IdempotencyTest, AnAnswerIsRepeatedWithoutCreditAndNotInAFrozenWorkspace) {
  const Id first = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
  world.state.wallets.at("ws").paid_nano_usd = 0;
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
  world.state.wallets.at("ws").frozen = Freeze::kOperator;
  EXPECT_EQ(Again(), Deny::kFrozen);
}

TEST_F(IdempotencyTest, AChargedExpiryCountsAsAnswered) {
  const Id first = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeHeartbeat(first, 1, 100, 10)).ok);
  world.now_us += world.policy.hold_ttl_us + 1;
  EXPECT_TRUE(world.Do(MakeExpire(first)).ok);
  ASSERT_EQ(world.hold(first).state, HoldState::kExpiredCharged);
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
}

TEST_F(IdempotencyTest, AnotherBodyIsRefusedHoweverTheFirstRequestEnded) {
  const Id first = OpenWithKey();
  const std::string other(32, 'o');
  EXPECT_EQ(world.Do(Ask('k', other)).denied_by, Deny::kIdempotencyBody);
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
  EXPECT_EQ(world.Do(Ask('k', other)).denied_by, Deny::kIdempotencyBody);
}

TEST_F(IdempotencyTest, AFreeRequestIsRunAgain) {
  const Id voided = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeVoid(voided)).ok);
  const Id nothing = OpenWithKey();  // takes its place
  EXPECT_EQ(Again(), Deny::kIdempotencyRunning);
  EXPECT_TRUE(world.Do(MakeSettle(nothing, 0, 0, Outcome::kFailedBeforeOutput)).ok);
  const Id refused = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(refused, 100, 100)).ok);
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
  EXPECT_TRUE(world.Do(MakeVoid(refused, true)).ok);
  const Id lost = OpenWithKey();
  world.now_us += world.policy.hold_ttl_us + 1;
  EXPECT_TRUE(world.Do(MakeExpire(lost)).ok);
  ASSERT_EQ(world.hold(lost).state, HoldState::kExpiredVoid);
  const Id last = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(last, 100, 100)).ok);
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1'000'000 - 300) << "one of them is charged";
}

TEST_F(IdempotencyTest, ALateSettleOfAReplacedRequestIsFree) {
  const Id lost = OpenWithKey();
  world.now_us += world.policy.hold_ttl_us + 1;
  EXPECT_TRUE(world.Do(MakeExpire(lost)).ok);
  const Id again = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(again, 100, 100)).ok);
  EXPECT_TRUE(world.Do(MakeSettle(lost, 100, 100)).ok);
  EXPECT_EQ(world.hold(lost).charged_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1'000'000 - 300);
  // Repeating it changes nothing and makes no dead letter.
  (void)world.Do(MakeSettle(lost, 100, 100));
  EXPECT_TRUE(world.last.dead_letters.empty());
  EXPECT_EQ(world.wallet().paid_nano_usd, 1'000'000 - 300);
}

TEST_F(IdempotencyTest, ALateSettleOfARequestThatNobodyRepeatedIsCharged) {
  const Id lost = OpenWithKey();
  world.now_us += world.policy.hold_ttl_us + 1;
  EXPECT_TRUE(world.Do(MakeExpire(lost)).ok);
  EXPECT_TRUE(world.Do(MakeSettle(lost, 100, 100)).ok);
  EXPECT_EQ(world.hold(lost).charged_nano_usd, 300);
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
}

TEST_F(IdempotencyTest, ARequestWhoseHoldIsGoneIsRunAgain) {
  const Id first = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
  world.state.holds.erase(first);
  const Id again = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(again, 100, 100)).ok);
}

TEST_F(IdempotencyTest, ARepetitionOfTheSameRequestIsNoConflict) {
  Authorize ask = Ask();
  const Reply first = world.Do(ask);
  ASSERT_TRUE(first.ok);
  EXPECT_EQ(world.Do(ask), first);
  ask.attempt = 1;  // moved to another router
  EXPECT_TRUE(world.Do(ask).ok);
  EXPECT_TRUE(world.Do(MakeVoid(ask.request_id)).ok);
}

TEST_F(IdempotencyTest, AfterADayTheKeyIsFree) {
  const Id first = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(first, 100, 100)).ok);
  world.now_us += world.policy.idempotency_us - 1;
  EXPECT_EQ(Again(), Deny::kIdempotencyDone);
  world.now_us += 1;
  const Id again = OpenWithKey();
  EXPECT_TRUE(world.Do(MakeSettle(again, 100, 100)).ok);
}

TEST_F(IdempotencyTest, OtherKeysAndRequestsWithoutOneAreNotConcerned) {
  const Id first = OpenWithKey();
  const Id without = Open();
  const Authorize other = Ask('o');
  EXPECT_TRUE(world.Do(other).ok);
  Authorize check = Ask();
  check.check_only = true;
  EXPECT_TRUE(world.Do(check).ok) << "without an engine nothing is billed";
  for (const Id& id : {first, without, other.request_id}) EXPECT_TRUE(world.Do(MakeVoid(id)).ok);
}

TEST_F(IdempotencyTest, OfTwoInOneBatchOneRuns) {
  const std::vector<Operation> both = {Ask(), Ask()};
  const Applied applied = Apply(world.state, both, world.now_us, world.policy);
  EXPECT_TRUE(applied.replies[0].ok);
  EXPECT_EQ(applied.replies[1].denied_by, Deny::kIdempotencyRunning);
  EXPECT_EQ(applied.idempotency_keys.size(), 1u);
}

TEST_F(IdempotencyTest, ARefusedRequestTakesNoKey) {
  Authorize large = Ask();
  large.prompt_bound = 2'000'000;
  EXPECT_EQ(world.Do(large).denied_by, Deny::kNoCredit);
  EXPECT_TRUE(world.last.idempotency_keys.empty());
  EXPECT_EQ(world.Do(Ask('k', std::string(31, 'x'))).denied_by, Deny::kInvalid);
  EXPECT_EQ(world.Do(Ask('k', "")).denied_by, Deny::kInvalid);
}

}  // namespace
}  // namespace tollgate::billing
