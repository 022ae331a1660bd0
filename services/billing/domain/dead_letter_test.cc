#include "services/billing/domain/dead_letter.h"

#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using DeadLetterTest = LedgerTest;

TEST(EncodeSettle, KeepsEveryField) {
  Settle settle = MakeSettle(TestId(7, 1), 10, 20, Outcome::kFailedMidStream);
  settle.usage.cached = 3;
  settle.usage.cache_write = 4;
  settle.usage.reasoning = -5;
  settle.cut_by_credit = true;
  settle.first_token_us = 6;
  settle.attempt = 2;
  settle.engine = "an engine\nwith blanks";
  const auto decoded = DecodeSettle(EncodeSettle(settle), settle.request_id, "ws");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(EncodeSettle(*decoded), EncodeSettle(settle));
  EXPECT_EQ(decoded->usage, settle.usage);
  EXPECT_EQ(decoded->outcome, settle.outcome);
  EXPECT_EQ(decoded->engine, settle.engine);
  EXPECT_EQ(decoded->attempt, 2);
  for (const char* text : {"", "settle1", "settle1 1 2 3", "settle2 1 2 3 4 5 6 7 8 9 10 11 e",
                           "settle1 1 2 3 4 5 6 7 8 9 10 x e"}) {
    EXPECT_FALSE(DecodeSettle(text, settle.request_id, "ws")) << text;
  }
}

TEST_F(DeadLetterTest, ARefusedSettleIsKeptWithItsReason) {
  Credit(1000);
  const Id unknown = world.NewId();
  EXPECT_EQ(world.Do(MakeSettle(unknown, 100, 5)).denied_by, Deny::kInvalid);
  ASSERT_EQ(world.last.dead_letters.size(), 1u);
  EXPECT_EQ(world.last.dead_letters[0].id, unknown);
  EXPECT_EQ(world.last.dead_letters[0].workspace, "ws");
  EXPECT_EQ(world.last.dead_letters[0].reason, Deny::kInvalid);
  EXPECT_EQ(world.last.dead_letters[0].operation, EncodeSettle(MakeSettle(unknown, 100, 5)));

  const Id reused = Open();
  ASSERT_TRUE(world.Do(MakeSettle(reused, 100, 5)).ok);
  EXPECT_TRUE(world.last.dead_letters.empty());
  EXPECT_EQ(world.Do(MakeSettle(reused, 100, 6)).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.last.dead_letters.size(), 1u);

  const Id late = Open();
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(late)).ok);
  world.now_us += 25 * kHourUs;
  EXPECT_EQ(world.Do(MakeSettle(late, 100, 5)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.last.dead_letters.size(), 1u);

  EXPECT_FALSE(world.Do(MakeSettle(world.NewId(), 1, 1, Outcome::kCompleted, "No Name!")).ok);
  ASSERT_EQ(world.last.dead_letters.size(), 1u);
  EXPECT_EQ(world.last.dead_letters[0].workspace, "");
}

TEST_F(DeadLetterTest, AnExpectedRefusalIsNone) {
  Credit(1000);
  // The settle would have charged nothing.
  EXPECT_FALSE(world.Do(MakeSettle(world.NewId(), 100, 0, Outcome::kFailedBeforeOutput)).ok);
  EXPECT_TRUE(world.last.dead_letters.empty());
  // The caller got an error.
  const Id refused = Open();
  ASSERT_TRUE(world.Do(MakeVoid(refused)).ok);
  EXPECT_EQ(world.Do(MakeSettle(refused, 100, 5)).denied_by, Deny::kClosed);
  EXPECT_TRUE(world.last.dead_letters.empty());
  // Another router has taken over.
  const Id moved = Open();
  Authorize again = MakeAuthorize(moved, 100, 100);
  again.attempt = 1;
  ASSERT_TRUE(world.Do(again).ok);
  EXPECT_EQ(world.Do(MakeSettle(moved, 100, 5)).denied_by, Deny::kClosed);
  EXPECT_TRUE(world.last.dead_letters.empty());
  // Only settles become dead letters.
  EXPECT_FALSE(world.Do(MakeHeartbeat(world.NewId(), 1, 1, 1)).ok);
  EXPECT_TRUE(world.last.dead_letters.empty());
}

ResolveDeadLetter Resolve(const Id& id, DeadLetterState to) {
  return {id, "ws", 1, to, "operator", "checked"};
}

// Dead letter of a settle that arrived before its hold.
struct Stored {
  Id id;
  std::string key;
};
Stored Store(World& world) {
  const Id id = world.NewId();
  EXPECT_FALSE(world.Do(MakeSettle(id, 100, 5)).ok);
  DeadLetter letter = world.last.dead_letters.at(0);
  letter.number = 1;
  const std::string key = DeadLetterKey(id, 1);
  world.state.dead_letters[key] = letter;
  return {id, key};
}

TEST_F(DeadLetterTest, ARetryAppliesTheSettleOnceAndLeavesAnEntry) {
  Credit(1000);
  const Stored stored = Store(world);
  EXPECT_EQ(world.Do(Resolve(stored.id, DeadLetterState::kRetried)).denied_by, Deny::kInvalid);
  EXPECT_EQ(world.state.dead_letters[stored.key].state, DeadLetterState::kOpen)
      << "refused again, so it stays open";
  EXPECT_TRUE(world.last.dead_letters.empty());

  ASSERT_TRUE(world.Do(MakeAuthorize(stored.id, 100, 100)).ok);
  const Reply reply = world.Do(Resolve(stored.id, DeadLetterState::kRetried));
  EXPECT_TRUE(reply.ok);
  EXPECT_EQ(reply.charged_nano_usd, 110);
  EXPECT_EQ(world.wallet().paid_nano_usd, 890);
  EXPECT_EQ(world.hold(stored.id).state, HoldState::kSettled);
  EXPECT_EQ(world.last.resolved_dead_letters, std::vector<std::string>{stored.key});
  EXPECT_EQ(world.last.entries.back().kind, EntryKind::kDeadLetterResolved);
  EXPECT_EQ(world.last.entries.back().memo, "retried by operator: checked");
  EXPECT_TRUE(world.Do(Resolve(stored.id, DeadLetterState::kRetried)).ok) << "a repetition";
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(world.Do(Resolve(stored.id, DeadLetterState::kWrittenOff)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.wallet().paid_nano_usd, 890);
}

TEST_F(DeadLetterTest, ASettleThatNamesNoWorkspaceCanBeWrittenOff) {
  const Id id = world.NewId();
  EXPECT_FALSE(world.Do(MakeSettle(id, 1, 1, Outcome::kCompleted, "No Name!")).ok);
  DeadLetter letter = world.last.dead_letters.at(0);
  letter.number = 1;
  world.state.dead_letters[DeadLetterKey(id, 1)] = letter;
  ResolveDeadLetter resolve = Resolve(id, DeadLetterState::kRetried);
  resolve.workspace = "";
  EXPECT_EQ(world.Do(resolve).denied_by, Deny::kInvalid) << "a hold cannot exist";
  resolve.to = DeadLetterState::kWrittenOff;
  EXPECT_TRUE(world.Do(resolve).ok);
  EXPECT_EQ(world.state.dead_letters[DeadLetterKey(id, 1)].state, DeadLetterState::kWrittenOff);
  EXPECT_TRUE(world.last.entries.empty()) << "without a chain only the row records the person";
  resolve.request_id = world.NewId();
  EXPECT_EQ(world.Do(resolve).denied_by, Deny::kUnknownDeadLetter);
}

TEST_F(DeadLetterTest, AWriteOffMovesNoMoneyAndLeavesAnEntry) {
  Credit(1000);
  const Stored stored = Store(world);
  EXPECT_TRUE(world.Do(Resolve(stored.id, DeadLetterState::kWrittenOff)).ok);
  ASSERT_EQ(world.last.entries.size(), 1u);
  EXPECT_EQ(world.last.entries[0].amount_nano_usd, 0);
  EXPECT_EQ(world.last.entries[0].memo, "written off by operator: checked");
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  EXPECT_EQ(world.state.dead_letters[stored.key].actor, "operator");
  EXPECT_EQ(world.Do(Resolve(stored.id, DeadLetterState::kRetried)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(Resolve(world.NewId(), DeadLetterState::kWrittenOff)).denied_by,
            Deny::kUnknownDeadLetter);
  ResolveDeadLetter nobody = Resolve(stored.id, DeadLetterState::kWrittenOff);
  nobody.actor.clear();
  EXPECT_EQ(world.Do(nobody).denied_by, Deny::kInvalid);
}

}  // namespace
}  // namespace tollgate::billing
