#include "services/billing/domain/dead_letter.h"

#include <gtest/gtest.h>

#include "services/billing/domain/testing/lease_world.h"

namespace tollgate::billing {
namespace {

using DeadLetterTest = LeaseTest;

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

// The admission is the only price of a request that the ledger does not know.
TEST_F(DeadLetterTest, TheLetterKeepsTheWholeAdmission) {
  Settle settle = Admitted(world.NewId(), 400, 150);
  Admission admission = *settle.admission;
  admission.authorize.attempt = 1;
  admission.authorize.surface = Surface::kMessages;
  admission.authorize.client_request_id = "req 1:2";
  admission.authorize.quota_keys = {"key", "rotated"};
  settle.admission = std::make_shared<const Admission>(admission);
  const std::string text = EncodeSettle(settle);
  const auto decoded = DecodeSettle(text, settle.request_id, "ws");
  ASSERT_TRUE(decoded && decoded->admission);
  EXPECT_EQ(EncodeSettle(*decoded), text);
  EXPECT_EQ(decoded->engine, settle.engine);
  EXPECT_EQ(decoded->usage, settle.usage);
  const Authorize& authorize = decoded->admission->authorize;
  EXPECT_EQ(authorize.request_id, settle.request_id);
  EXPECT_EQ(authorize.workspace, "ws");
  EXPECT_EQ(authorize.key_id, "key");
  EXPECT_EQ(authorize.model, "model");
  EXPECT_EQ(authorize.rates.input_pico_usd, kTestRates.input_pico_usd);
  EXPECT_EQ(authorize.rates.output_pico_usd, kTestRates.output_pico_usd);
  EXPECT_EQ(authorize.price_version, 3);
  EXPECT_EQ(authorize.prompt_bound, 150);
  EXPECT_EQ(authorize.output_bound, 100);
  EXPECT_EQ(authorize.surface, Surface::kMessages);
  EXPECT_TRUE(authorize.streamed);
  EXPECT_EQ(authorize.attempt, 1);
  EXPECT_EQ(authorize.client_request_id, "req 1:2");
  EXPECT_EQ(authorize.quota_keys, admission.authorize.quota_keys);
  EXPECT_EQ(decoded->admission->lessee, "loop");
  EXPECT_EQ(decoded->admission->month, Month());
  EXPECT_EQ(decoded->admission->authorized_nano_usd, 400);
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(DecodeSettle(text.substr(0, bytes), settle.request_id, "ws")) << bytes;
  }
  EXPECT_FALSE(DecodeSettle(text + " ", settle.request_id, "ws"));
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

struct Stored {
  Id id;
  std::string key;
};
// Dead letter of a settle that the ledger refuses.
Stored Store(World& world, const Settle& settle, int32_t number = 1) {
  const Reply refused = world.Do(settle);
  EXPECT_FALSE(refused.ok);
  DeadLetter letter = world.last.dead_letters.at(0);
  letter.number = number;
  const std::string key = DeadLetterKey(letter.id, number);
  world.state.dead_letters[key] = letter;
  return {letter.id, key};
}
// The settle arrived before its hold.
Stored Store(World& world) { return Store(world, MakeSettle(world.NewId(), 100, 5)); }

// A retry by a person who can be one of two.
ResolveDeadLetter Retry(const Settle& settle, int32_t number = 1) {
  ResolveDeadLetter retry = Resolve(settle.request_id, DeadLetterState::kRetried);
  retry.number = number;
  retry.proved = true;
  retry.letter_admission = settle.admission;
  return retry;
}

Decide Approve(const Id& id, const std::string& actor) {
  return {"ws", AdjustmentIdOf(id), true, actor, "checked, too"};
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

// The workspace was restored from a backup that did not have it.
TEST_F(DeadLetterTest, ARetryHasThePriceOfTheAdmission) {
  const Settle settle = Admitted(world.NewId(), 400, 150);
  const Stored stored = Store(world, settle);
  Credit(1000);
  EXPECT_EQ(world.Do(Resolve(stored.id, DeadLetterState::kRetried)).denied_by, Deny::kInvalid)
      << "the rows of the admission are not loaded";
  const Reply reply = world.Do(Retry(settle));
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.charged_nano_usd, 150);
  EXPECT_EQ(world.wallet().paid_nano_usd, 850);
  EXPECT_EQ(world.state.dead_letters[stored.key].state, DeadLetterState::kRetried);
  EXPECT_TRUE(world.Do(Retry(settle)).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 850) << "once";
}

TEST_F(DeadLetterTest, ASettleThatCameTooLateWaitsAsAnAdjustmentForASecondPerson) {
  Credit(1000);
  const Settle settle = MakeSettle(Open(), 100, 5);
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(settle.request_id)).ok);
  world.now_us += 25 * kHourUs;
  const int64_t before = world.wallet().paid_nano_usd;
  const int64_t charged = world.hold(settle.request_id).charged_nano_usd;
  const Stored stored = Store(world, settle);

  ResolveDeadLetter alone = Retry(settle);
  alone.proved = false;
  EXPECT_EQ(world.Do(alone).denied_by, Deny::kSamePerson);
  EXPECT_EQ(world.state.dead_letters[stored.key].state, DeadLetterState::kOpen);

  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world.Do(Retry(settle)).ok) << "a repetition, too";
  EXPECT_EQ(world.state.dead_letters[stored.key].state, DeadLetterState::kAdjusted);
  EXPECT_EQ(world.wallet().paid_nano_usd, before) << "nothing moves yet";
  EXPECT_EQ(world.Do(Resolve(stored.id, DeadLetterState::kWrittenOff)).denied_by, Deny::kClosed);
  EXPECT_EQ(world.Do(Approve(stored.id, "operator")).denied_by, Deny::kSamePerson);
  ASSERT_TRUE(world.Do(Approve(stored.id, "another")).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, before - (110 - charged)) << "the price of the hold";
}

TEST_F(DeadLetterTest, AnAdmissionThatCameTooLateIsBookedOnce) {
  Credit(1000);
  const Settle settle = Admitted(world.NewId(), 400, 150);
  Settle other = Admitted(settle.request_id, 400, 160);
  other.admission = settle.admission;
  world.now_us += 8 * 24 * kHourUs;
  const Stored stored = Store(world, settle);
  const Stored second = Store(world, other, 2);
  ASSERT_TRUE(world.Do(Retry(settle)).ok);
  ASSERT_TRUE(world.Do(Approve(stored.id, "another")).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 850);
  EXPECT_EQ(world.Do(Retry(other, 2)).denied_by, Deny::kIdReuse)
      << "the request is charged already";
  EXPECT_EQ(world.state.dead_letters[second.key].state, DeadLetterState::kOpen);

  world.now_us -= 8 * 24 * kHourUs;
  EXPECT_EQ(world.Do(Retry(other, 2)).denied_by, Deny::kIdReuse)
      << "nor is it settled when a repaired clock lets it in again";
  EXPECT_EQ(world.wallet().paid_nano_usd, 850);
}

// What the archive may have was charged when it was archived.
TEST_F(DeadLetterTest, AnAdmissionIsNotBookedIfTheArchiveMayHaveItsHold) {
  Credit(1000);
  const int32_t month = Month();
  const int64_t next_month_us = UtcMonthStartUs(NextMonth(month));
  // The router's clock may be ahead: the ledger dated the hold before the end of the month.
  const Id ids[] = {TestId(1, next_month_us - kHourUs), TestId(2, next_month_us + kHourUs)};
  world.now_us = next_month_us + 20 * 24 * kHourUs;
  for (const Id& id : ids) {
    const Settle settle = Admitted(id, 400, 150, month);
    const Stored stored = Store(world, settle);
    world.state.dead_letters[stored.key].archived_month = month;
    EXPECT_EQ(world.Do(Retry(settle)).denied_by, Deny::kInvalid);
    world.state.dead_letters[stored.key].archived_month = 0;
    EXPECT_TRUE(world.Do(Retry(settle)).ok);
  }
}

}  // namespace
}  // namespace tollgate::billing
