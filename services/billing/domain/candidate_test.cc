// Decision 66: a hold covers the most expensive model that may answer; the one that answered is
// charged.
#include "services/billing/domain/chain.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

// The first model costs 1 and 2 nano-USD per token (kTestRates).
constexpr Rates kDear = {5000, 9000};
constexpr Rates kCheap = {100, 200};

class FallbackTest : public LedgerTest {
 protected:
  Authorize Request(int64_t prompt = 100, int64_t output = 100) {
    Authorize op = MakeAuthorize(world.NewId(), prompt, output);
    op.fallbacks = {{"dear", kDear, 4, prompt, output}, {"cheap", kCheap, 5, prompt, output}};
    return op;
  }
  static Authorize Next(Authorize op, int32_t attempt, int32_t candidate) {
    op.attempt = attempt;
    op.candidate = candidate;
    return op;
  }
  // Authorizes the next attempt and settles it with 100 and 10 tokens.
  Reply Answer(const Authorize& op, int32_t attempt, int32_t candidate) {
    EXPECT_TRUE(world.Do(Next(op, attempt, candidate)).ok);
    Settle settle = MakeSettle(op.request_id, 100, 10);
    settle.attempt = attempt;
    return world.Do(settle);
  }
};

TEST_F(FallbackTest, TheHoldCoversTheDearest) {
  Credit(10'000);
  const Reply reply = world.Do(Request());
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.authorized_nano_usd, 100 * 5 + 100 * 9);
  EXPECT_EQ(reply.slice_nano_usd, 2 * world.policy.slice_tokens) << "slice of the requested model";
}

TEST_F(FallbackTest, CreditThatIsTooLittleForTheDearestIsRefused) {
  Credit(100 * 5 + 9 - 1);
  EXPECT_EQ(world.Do(Request()).denied_by, Deny::kNoCredit);
  Credit(1);
  EXPECT_TRUE(world.Do(Request()).ok) << "prompt and one token of the most expensive model";
}

TEST_F(FallbackTest, TheModelThatAnsweredIsCharged) {
  struct {
    int32_t candidate;
    int64_t charged;
    const char* model;
    int64_t version;
  } const rows[] = {{0, 100 + 10 * 2, "model", 3},
                    {1, 100 * 5 + 10 * 9, "dear", 4},
                    {2, (100 * 100 + 10 * 200) / 1000, "cheap", 5}};
  for (const auto& row : rows) {
    Credit(10'000);
    const Authorize op = Request();
    ASSERT_TRUE(world.Do(op).ok);
    const Reply settled = Answer(op, 1, row.candidate);
    ASSERT_TRUE(settled.ok);
    EXPECT_EQ(settled.charged_nano_usd, row.charged);
    const Hold& hold = world.hold(op.request_id);
    EXPECT_EQ(hold.model, row.model);
    EXPECT_EQ(hold.price_version, row.version);
    EXPECT_EQ(hold.candidates.size(), 3u);
    ASSERT_EQ(world.last.usage_changes.size(), 1u);
    EXPECT_EQ(world.last.usage_changes[0].model, row.model) << "the roll-ups have the same model";
  }
}

TEST_F(FallbackTest, AnEarlierTryBooksNothing) {
  Credit(10'000);
  const Authorize op = Request();
  ASSERT_TRUE(world.Do(op).ok);
  ASSERT_TRUE(world.Do(MakeHeartbeat(op.request_id, 1, 100, 50)).ok);
  ASSERT_TRUE(world.Do(Next(op, 1, 2)).ok);
  EXPECT_EQ(world.Do(MakeSettle(op.request_id, 100, 50)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.hold(op.request_id).usage, Usage()) << "usage of the earlier attempt is dropped";
  // The router of the last attempt is lost as well.
  world.now_us += world.policy.hold_ttl_us + kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(op.request_id)).ok);
  EXPECT_EQ(world.hold(op.request_id).charged_nano_usd, 0);
}

TEST_F(FallbackTest, AHoldThatExpiresIsChargedForTheModelOfTheLastTry) {
  Credit(10'000);
  const Authorize op = Request();
  ASSERT_TRUE(world.Do(op).ok);
  ASSERT_TRUE(world.Do(Next(op, 1, 1)).ok);
  Heartbeat progress = MakeHeartbeat(op.request_id, 1, 100, 10);
  progress.attempt = 1;
  ASSERT_TRUE(world.Do(progress).ok);
  world.now_us += world.policy.hold_ttl_us + kSecondUs;
  EXPECT_EQ(world.Do(MakeExpire(op.request_id)).charged_nano_usd, 100 * 5 + 10 * 9);
}

TEST_F(FallbackTest, RepetitionsChangeNothingAndTheModelChangesWithTheTryOnly) {
  Credit(10'000);
  const Authorize op = Request();
  const Reply first = world.Do(op);
  EXPECT_EQ(world.Do(op), first);
  EXPECT_EQ(world.Do(Next(op, 0, 1)).denied_by, Deny::kIdReuse);
  const Reply second = world.Do(Next(op, 1, 1));
  EXPECT_EQ(second.authorized_nano_usd, first.authorized_nano_usd);
  EXPECT_EQ(world.Do(Next(op, 1, 1)), second);
  EXPECT_EQ(world.Do(Next(op, 0, 0)).denied_by, Deny::kClosed);
  Authorize other = op;
  other.fallbacks[1].rates.output_pico_usd = 1;
  EXPECT_EQ(world.Do(Next(other, 2, 2)).denied_by, Deny::kIdReuse) << "another price";
  other = op;
  other.fallbacks.pop_back();
  EXPECT_EQ(world.Do(Next(other, 2, 1)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.hold(op.request_id).candidate, 1);
}

TEST_F(FallbackTest, MalformedListsAreRefused) {
  Credit(10'000);
  EXPECT_EQ(world.Do(Next(Request(), 0, 3)).denied_by, Deny::kInvalid);
  EXPECT_EQ(world.Do(Next(Request(), 0, -1)).denied_by, Deny::kInvalid);
  Authorize op = Request();
  op.fallbacks.resize(kMaxCandidates, op.fallbacks[0]);
  EXPECT_EQ(world.Do(op).denied_by, Deny::kInvalid);
  op = Request();
  op.fallbacks[1].rates.input_pico_usd = -1;
  EXPECT_EQ(world.Do(op).denied_by, Deny::kInvalid);
}

TEST_F(FallbackTest, TheChainCoversEveryPriceAndWhichModelAnswered) {
  Credit(10'000);
  const Authorize op = Request();
  ASSERT_TRUE(world.Do(op).ok);
  Hold hold = world.hold(op.request_id);
  const std::string admission = AdmissionDetail(hold);
  EXPECT_EQ(world.last.entries[0].detail, admission);
  hold.Ask(2);
  EXPECT_EQ(AdmissionDetail(hold), admission) << "the detail of the admission does not change";
  EXPECT_NE(ClosingDetail(hold), ClosingDetail(world.hold(op.request_id)));
  hold.candidates[2].rates.input_pico_usd += 1;
  EXPECT_NE(AdmissionDetail(hold), admission);
}

}  // namespace
}  // namespace tollgate::billing
