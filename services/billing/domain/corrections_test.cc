// Corrections post new entries, and large ones need two people (docs/design/ledger.md 8).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

Correct MakeCorrect(std::string id, CommandKind kind, int64_t amount_nano_usd) {
  Correct op;
  op.workspace = "ws";
  op.command_id = std::move(id);
  op.kind = kind;
  op.amount_nano_usd = amount_nano_usd;
  op.actor = "ann";
  op.reason = "test";
  return op;
}

class CorrectionsTest : public LedgerTest {
 protected:
  Reply Do(std::string id, CommandKind kind, int64_t amount_nano_usd) {
    return world.Do(MakeCorrect(std::move(id), kind, amount_nano_usd));
  }
  EntryKind LastEntry() const { return world.last.entries.back().kind; }
};

TEST_F(CorrectionsTest, RefundsOnlyUnspentPaidCreditThatNoRequestHolds) {
  Credit(1000);
  Credit(500, /*granted=*/true);
  Open(100, 100);  // holds 300
  EXPECT_EQ(Do("r1", CommandKind::kRefund, 1001).denied_by, Deny::kNoCredit);
  EXPECT_TRUE(Do("r1", CommandKind::kRefund, 1000).ok);
  EXPECT_EQ(LastEntry(), EntryKind::kRefund);
  EXPECT_EQ(world.wallet().paid_nano_usd, 0);
  EXPECT_EQ(world.wallet().granted_nano_usd, 500);
  // Granted credit cannot be refunded.
  EXPECT_EQ(Do("r2", CommandKind::kRefund, 1).denied_by, Deny::kNoCredit);
}

TEST_F(CorrectionsTest, ARepetitionChangesNothingAndAnotherBodyIsRefused) {
  Credit(1000);
  EXPECT_TRUE(Do("r", CommandKind::kRefund, 400).ok);
  EXPECT_TRUE(Do("r", CommandKind::kRefund, 400).ok);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(Do("r", CommandKind::kRefund, 401).denied_by, Deny::kIdReuse);
  EXPECT_EQ(Do("r", CommandKind::kWriteOff, 400).denied_by, Deny::kIdReuse);
  EXPECT_EQ(world.wallet().paid_nano_usd, 600);
}

TEST_F(CorrectionsTest, AdjustsUpAndDownEachKindOfCredit) {
  Credit(1000);
  EXPECT_TRUE(Do("up", CommandKind::kCreditAdjustment, 50).ok);
  EXPECT_TRUE(Do("down", CommandKind::kDebitAdjustment, 20).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1030);
  Correct granted = MakeCorrect("g", CommandKind::kCreditAdjustment, 7);
  granted.granted = true;
  EXPECT_TRUE(world.Do(granted).ok);
  EXPECT_EQ(world.wallet().granted_nano_usd, 7);
  granted.command_id = "g2";
  granted.kind = CommandKind::kDebitAdjustment;
  granted.amount_nano_usd = 8;
  EXPECT_EQ(world.Do(granted).denied_by, Deny::kNoCredit);
}

TEST_F(CorrectionsTest, AFrozenWorkspaceTakesNoRequestsAndSettlesTheRunningOnes) {
  Credit(1000);
  const Id running = Open(100, 100);
  EXPECT_TRUE(Do("f", CommandKind::kFreeze, 0).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 1, 1)).denied_by, Deny::kFrozen);
  EXPECT_TRUE(world.Do(MakeSettle(running, 100, 10)).ok);
  EXPECT_TRUE(Do("u", CommandKind::kUnfreeze, 0).ok);
  EXPECT_TRUE(world.Do(MakeAuthorize(world.NewId(), 1, 1)).ok);
}

TEST_F(CorrectionsTest, AFailedCheckIsNotTheCustomersFault) {
  Credit(1000);
  Correct freeze = MakeCorrect("f", CommandKind::kFreeze, 0);
  freeze.freeze = Freeze::kFailedCheck;
  EXPECT_TRUE(world.Do(freeze).ok);
  EXPECT_EQ(world.Do(MakeAuthorize(world.NewId(), 1, 1)).denied_by, Deny::kFrozenByCheck);
}

TEST_F(CorrectionsTest, AChargebackTakesTheWalletAndLeavesTheRestAsReceivable) {
  Credit(1000);
  const Id running = Open(100, 100);  // holds 300, which a chargeback cannot take
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 1500).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 300);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 800);
  EXPECT_EQ(world.wallet().frozen, Freeze::kDispute);
  EXPECT_TRUE(world.Do(MakeSettle(running, 100, 100)).ok);
  // The next credit pays the receivable, and the freeze ends when the receivable is zero.
  Credit(500);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 300);
  EXPECT_EQ(world.wallet().frozen, Freeze::kDispute);
  Credit(500);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 200);
  EXPECT_EQ(world.wallet().frozen, Freeze::kNone);
}

// Credit becomes available again when a request ends.
TEST_F(CorrectionsTest, WhatIsOwedIsPaidAsSoonAsAHoldEnds) {
  using Ending = std::function<Operation(const Id&)>;
  const std::pair<const char*, Ending> endings[] = {
      {"settle", [](const Id& id) { return MakeSettle(id, 50, 10); }},
      {"void", [](const Id& id) { return MakeVoid(id); }},
      {"expire", [](const Id& id) { return MakeExpire(id); }}};
  for (const auto& [name, ending] : endings) {
    world = World();
    Credit(1000);
    const Id running = Open(100, 100);  // holds 300
    EXPECT_TRUE(Do("d", CommandKind::kChargeback, 900).ok);
    EXPECT_EQ(world.wallet().receivable_nano_usd, 200) << name;
    EXPECT_EQ(world.wallet().frozen, Freeze::kDispute) << name;
    world.now_us += 61 * kSecondUs;
    EXPECT_TRUE(world.Do(ending(running)).ok) << name;
    const int64_t charged = world.hold(running).charged_nano_usd;
    EXPECT_EQ(world.wallet().receivable_nano_usd, 0) << name;
    EXPECT_EQ(world.wallet().paid_nano_usd, 100 - charged) << name;
    EXPECT_EQ(world.wallet().frozen, Freeze::kNone) << name << ": the receivable is paid";
  }
}

TEST_F(CorrectionsTest, WhatIsOwedIsPaidByWhatARefusalGivesBack) {
  Credit(300);
  const Id id = Open(100, 100);
  EXPECT_TRUE(world.Do(MakeSettle(id, 100, 100)).ok);
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 250).ok);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 250);
  EXPECT_TRUE(world.Do(MakeVoid(id, /*refused=*/true)).ok);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 0);
  EXPECT_EQ(world.wallet().paid_nano_usd, 50);
  EXPECT_EQ(world.wallet().frozen, Freeze::kNone);
}

TEST_F(CorrectionsTest, GrantedCreditPaysNoDebt) {
  Credit(1000);
  const Id running = Open(100, 100);
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 1500).ok);
  Credit(400, /*granted=*/true);
  EXPECT_TRUE(world.Do(MakeSettle(running, 100, 100)).ok);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 500) << "the charge burned granted credit first";
  EXPECT_EQ(world.wallet().granted_nano_usd, 100);
  EXPECT_EQ(world.wallet().paid_nano_usd, 0);
  EXPECT_EQ(world.wallet().frozen, Freeze::kDispute);
}

TEST_F(CorrectionsTest, AWonDisputeGivesEverythingBack) {
  Credit(1000);
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 1500).ok);
  EXPECT_TRUE(Do("w", CommandKind::kChargebackWon, 1500).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 0);
  EXPECT_EQ(world.wallet().frozen, Freeze::kNone);
}

TEST_F(CorrectionsTest, AFailedRefundGivesTheCreditBackWithoutASecondPerson) {
  world.policy.second_person_above_nano_usd = 1'000;
  Credit(3'000);
  EXPECT_TRUE(Do("r", CommandKind::kRefund, 900).ok);
  EXPECT_EQ(Do("f", CommandKind::kRefundFailed, 900).command_state, CommandState::kPosted);
  EXPECT_EQ(LastEntry(), EntryKind::kRefundFailed);
  EXPECT_EQ(world.wallet().paid_nano_usd, 3'000);
  EXPECT_EQ(Do("large", CommandKind::kRefundFailed, 5'000).command_state, CommandState::kPosted);
  // The receivable is paid first.
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 10'000).ok);
  EXPECT_TRUE(Do("g", CommandKind::kRefundFailed, 500).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 0);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 1'500);
}

TEST_F(CorrectionsTest, AWriteOffTakesAtMostWhatIsOwed) {
  Credit(1000);
  EXPECT_TRUE(Do("d", CommandKind::kChargeback, 1500).ok);
  EXPECT_EQ(Do("w", CommandKind::kWriteOff, 501).denied_by, Deny::kInvalid);
  EXPECT_TRUE(Do("w", CommandKind::kWriteOff, 500).ok);
  EXPECT_EQ(world.wallet().receivable_nano_usd, 0);
  EXPECT_EQ(world.wallet().frozen, Freeze::kNone);
}

TEST_F(CorrectionsTest, ALargeCorrectionWaitsForAnotherPerson) {
  world.policy.second_person_above_nano_usd = 100;
  Credit(1000);
  const Reply asked = Do("r", CommandKind::kRefund, 400);
  EXPECT_TRUE(asked.ok);
  EXPECT_EQ(asked.command_state, CommandState::kPending);
  EXPECT_EQ(LastEntry(), EntryKind::kCorrectionRequested);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  EXPECT_EQ(world.Do(Decide{"ws", "r", true, "ann", ""}).denied_by, Deny::kSamePerson);
  EXPECT_TRUE(world.Do(Decide{"ws", "r", true, "bob", "ok"}).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 600);
  // A correction is decided once.
  EXPECT_TRUE(world.Do(Decide{"ws", "r", true, "bob", "ok"}).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 600);
  EXPECT_EQ(world.Do(Decide{"ws", "r", false, "bob", "ok"}).denied_by, Deny::kIdReuse);
  EXPECT_EQ(Do("r", CommandKind::kRefund, 400).command_state, CommandState::kPosted);
}

TEST_F(CorrectionsTest, ASmallCorrectionWaitsIfItsSenderSaysSo) {
  Credit(1000);
  Correct small = MakeCorrect("c", CommandKind::kCreditAdjustment, 1);
  small.second_person = true;
  EXPECT_EQ(world.Do(small).command_state, CommandState::kPending);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  EXPECT_TRUE(world.Do(Decide{"ws", "c", true, "bob", "ok"}).ok);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1001);
}

TEST_F(CorrectionsTest, ARejectedCorrectionMovesNothing) {
  world.policy.second_person_above_nano_usd = 100;
  Credit(1000);
  Do("r", CommandKind::kRefund, 400);
  EXPECT_TRUE(world.Do(Decide{"ws", "r", false, "ann", "a mistake"}).ok);
  EXPECT_EQ(LastEntry(), EntryKind::kCorrectionRejected);
  EXPECT_EQ(world.wallet().paid_nano_usd, 1000);
  EXPECT_EQ(world.Do(Decide{"ws", "r", true, "bob", ""}).denied_by, Deny::kIdReuse);
}

TEST_F(CorrectionsTest, AnApprovalThatIsNoLongerPossibleLeavesThePendingCorrection) {
  world.policy.second_person_above_nano_usd = 100;
  Credit(1000);
  Do("r", CommandKind::kRefund, 1000);
  Open(100, 100);
  EXPECT_EQ(world.Do(Decide{"ws", "r", true, "bob", ""}).denied_by, Deny::kNoCredit);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_EQ(Do("r", CommandKind::kRefund, 1000).command_state, CommandState::kPending);
}

TEST_F(CorrectionsTest, NeedsAWalletAnActorAndAReason) {
  Correct other = MakeCorrect("x", CommandKind::kRefund, 1);
  other.workspace = "other";
  EXPECT_EQ(world.Do(other).denied_by, Deny::kUnknownWorkspace);
  Credit(1000);
  Correct nobody = MakeCorrect("x", CommandKind::kRefund, 1);
  nobody.actor = "";
  EXPECT_EQ(world.Do(nobody).denied_by, Deny::kInvalid);
  Correct no_reason = MakeCorrect("x", CommandKind::kRefund, 1);
  no_reason.reason = "";
  EXPECT_EQ(world.Do(no_reason).denied_by, Deny::kInvalid);
}

}  // namespace
}  // namespace tollgate::billing
