// Auto-reload charges a card only if the rules allow it at the moment of sending
// (docs/design/charging.md).
#include <gtest/gtest.h>

#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/testing/charging_world.h"

namespace tollgate::billing::payments {
namespace {

class ChargingTest : public ChargingWorld {};
INSTANTIATE_TEST_SUITE_P(All, ChargingTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(ChargingTest, SpendingChargesOnce) {
  Start();
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Paid("acme"), 14 * kNanoPerUsd);
  ExpectVerified(*replica_, "acme");
}

TEST_P(ChargingTest, ARefundPausesUntilAPersonResumes) {
  const Payment bought = Start();
  ASSERT_TRUE(
      replica_->admin.RefundPayment("acme", bought.id, kTen, "closed the account", "f1", "ann")
          .ok());
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Reload().state, ReloadState::kPaused);
  EXPECT_EQ(Reload().pause_reason, "refunded");
  Advance(40 * 86'400);
  Run();
  EXPECT_EQ(Charges(), 0u) << "no time ends this pause";
  Resume();
  EXPECT_EQ(Charges(), 1u) << "a person has seen the refund";
}

TEST_P(ChargingTest, ARefusedRefundPausesNothing) {
  const Payment bought = Start();
  Spend("acme", 3 * kNanoPerUsd);
  EXPECT_EQ(
      replica_->admin.RefundPayment("acme", bought.id, kTen, "left", "f1", "ann").error().reason,
      "NOT_REFUNDABLE");
  Run();
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
  Spend("acme", 3 * kNanoPerUsd);
  Run();
  EXPECT_EQ(Charges(), 1u);
}

TEST_P(ChargingTest, ADebitPausesUntilAPersonResumes) {
  Start();
  Adjust("acme", CommandKind::kDebitAdjustment, 6 * kNanoPerUsd, "d1");
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Reload().pause_reason, "debited");
  Resume();
  EXPECT_EQ(Charges(), 1u);
  Adjust("acme", CommandKind::kDebitAdjustment, kNanoPerUsd, "d2");
  Run();
  EXPECT_EQ(Reload().pause_reason, "debited") << "also while the balance is high";
}

TEST_P(ChargingTest, ADisputedCardIsNotChargedAgain) {
  EnableReload(*replica_, "acme");
  Run();
  ASSERT_EQ(Charges(), 1u);
  stripe_.TakeEvents();
  const std::string dispute = stripe_.Dispute(stripe_.intents().front().id);
  DeliverAll(*replica_);
  Run();
  EXPECT_EQ(Paid("acme"), 0) << "the chargeback took the credit";
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Reload().pause_reason, "disputed");
  Resume();
  EXPECT_EQ(Charges(), 1u) << "the card is disputed, whoever resumes";
  EXPECT_EQ(Reload().pause_reason, "card_disputed");
  stripe_.CloseDispute(dispute, "won");
  DeliverAll(*replica_);
  Run();
  Spend("acme", 6 * kNanoPerUsd);
  Resume();
  EXPECT_EQ(Charges(), 2u) << "a won dispute frees the card";
}

TEST_P(ChargingTest, AFraudWarningPausesAndKeepsTheCardFromBeingCharged) {
  EnableReload(*replica_, "acme");
  Run();
  ASSERT_EQ(Charges(), 1u);
  stripe_.TakeEvents();
  stripe_.WarnOfFraud(stripe_.intents().front().id);
  DeliverAll(*replica_);
  Run();
  EXPECT_EQ(Reload().pause_reason, "fraud_warning");
  EXPECT_EQ(Paid("acme"), kTen) << "no money was taken";
  Spend("acme", 6 * kNanoPerUsd);
  Resume();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Reload().pause_reason, "card_disputed");
}

TEST_P(ChargingTest, AClosedInquiryFreesTheCard) {
  EnableReload(*replica_, "acme");
  Run();
  stripe_.TakeEvents();
  const std::string inquiry =
      stripe_.Dispute(stripe_.intents().front().id, "warning_needs_response");
  DeliverAll(*replica_);
  Run();
  stripe_.CloseDispute(inquiry, "warning_closed");
  DeliverAll(*replica_);
  Run();
  Spend("acme", 6 * kNanoPerUsd);
  Resume();
  EXPECT_EQ(Charges(), 2u);
}

TEST_P(ChargingTest, AnInquiryPauses) {
  EnableReload(*replica_, "acme");
  Run();
  stripe_.TakeEvents();
  stripe_.Dispute(stripe_.intents().front().id, "warning_needs_response");
  DeliverAll(*replica_);
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Reload().pause_reason, "disputed");
}

// The provider takes no call: the charge waits.
TEST_P(ChargingTest, AWaitingChargeIsWithdrawnWhenItIsSwitchedOff) {
  Start();
  stripe_.SetFaults({.busy = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  EXPECT_EQ(Newest().state, PaymentState::kRequested) << "certainly not sent";
  ASSERT_TRUE(replica_->admin.UpdateReload("acme", {.enabled = false}, "ann").ok());
  Advance(70);
  Run();
  EXPECT_EQ(Newest().state, PaymentState::kCancelled);
  EXPECT_EQ(Newest().reason, "withdrawn: auto-reload is off");
  stripe_.SetFaults({});
  Advance(70);
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
  EXPECT_EQ(Reload().month_charged_nano_usd, 0);
  ExpectVerified(*replica_, "acme");
}

TEST_P(ChargingTest, AWaitingChargeIsWithdrawnWhenItIsNotNeededAnyMore) {
  Start();
  stripe_.SetFaults({.busy = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  Grant("acme", 100 * kNanoPerUsd, "bank");
  stripe_.SetFaults({});
  Advance(70);
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Newest().state, PaymentState::kCancelled);
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
}

TEST_P(ChargingTest, AWaitingChargeIsWithdrawnWhenItsCardIsDeleted) {
  Start();
  stripe_.SetFaults({.busy = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  auto done =
      replica_->store.Run("acme", clock_.WallUs(), [&](WorkspaceTx& tx) -> sql::SqlResult<void> {
        if (auto removed = tx.RemoveMethod("pm_acme"); !removed.ok()) return Fail{removed.error()};
        return {};
      });
  ASSERT_TRUE(done.ok());
  stripe_.SetFaults({});
  Advance(70);
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Reload().pause_reason, "no_payment_method");
}

TEST_P(ChargingTest, APersonCancelsAChargeThatWaits) {
  Start();
  stripe_.SetFaults({.busy = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  ASSERT_TRUE(replica_->admin.UpdateReload("acme", {.enabled = false}, "ann").ok());
  auto cancelled = replica_->admin.Cancel("acme", Newest().id, "not wanted", "ann");
  ASSERT_TRUE(cancelled.ok()) << cancelled.error().message;
  EXPECT_EQ(cancelled->state, PaymentState::kCancelled);
  EXPECT_EQ(Reload().month_charged_nano_usd, 0);
}

// The answer to the first call is lost, and the provider has no charge: it may still arrive.
TEST_P(ChargingTest, AChargeThatMayHaveBeenSentIsNotSentAgainWhenItIsSwitchedOff) {
  Start();
  stripe_.SetFaults({.lost_before = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  EXPECT_EQ(Newest().state, PaymentState::kUnknown);
  ASSERT_TRUE(replica_->admin.UpdateReload("acme", {.enabled = false}, "ann").ok());
  stripe_.SetFaults({});
  Advance(70);
  Run();
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Newest().state, PaymentState::kUnknown) << "the first call may still arrive";
  Advance(3700);
  Run();
  EXPECT_EQ(Newest().state, PaymentState::kCancelled);
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Reload().month_charged_nano_usd, 0);
}

TEST_P(ChargingTest, APauseDoesNotForgetAChargeThatIsOnItsWay) {
  const Payment bought = Start();
  stripe_.SetFaults({.lost_after = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  ASSERT_EQ(Charges(), 1u);
  stripe_.SetFaults({});
  ASSERT_TRUE(
      replica_->admin.RefundPayment("acme", bought.id, 2 * kNanoPerUsd, "left", "f1", "ann").ok());
  ASSERT_TRUE(replica_->admin.ResumeReload("acme", "ann").ok());
  replica_->engine.RunTriggers();
  EXPECT_EQ(Charges(), 1u) << "one charge at a time";
  Advance(70);
  Run();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Paid("acme"), 12 * kNanoPerUsd);
}

TEST_P(ChargingTest, ClosingSwitchesItOffAndForgetsTheCards) {
  EnableReload(*replica_, "acme");
  ASSERT_TRUE(replica_->admin.PrepareClose("acme", "auth").value());
  Run();
  EXPECT_EQ(Charges(), 0u) << "a closing workspace is not charged";
  EXPECT_FALSE(Reload().enabled);
  EXPECT_TRUE(replica_->admin.Methods("acme")->empty());
  ASSERT_TRUE(replica_->admin.PrepareClose("acme", "auth").value()) << "repeated";

  Grant("acme", kNanoPerCent, "g1");
  EXPECT_FALSE(replica_->admin.PrepareClose("acme", "auth").value()) << "it has credit";
}

TEST_P(ChargingTest, AWorkspaceWithAChargeUnderWayDoesNotClose) {
  stripe_.SetFaults({.lost_after = 1000});
  EnableReload(*replica_, "acme");
  Run();
  ASSERT_EQ(Charges(), 1u);
  EXPECT_FALSE(replica_->admin.PrepareClose("acme", "auth").value());
}

TEST_P(ChargingTest, HoldsChargeNothing) {
  Start();
  for (int i = 0; i < 4; ++i) {
    auto held = LedgerServicePort(*ledger_).Submit(MakeRequest("acme", 2 * kNanoPerUsd));
    ASSERT_TRUE(held.ok() && held->ok);
  }
  Run();
  EXPECT_EQ(Charges(), 0u) << "8 of 10 USD are held, none is spent";
}

TEST_P(ChargingTest, AtMostThreeChargesAnHour) {
  Start();
  for (int i = 0; i < 5; ++i) {
    Spend("acme", 6 * kNanoPerUsd);
    Run();
    Spend("acme", 4 * kNanoPerUsd);
    Run();
    if (Reload().state == ReloadState::kPaused) break;
  }
  EXPECT_EQ(Charges(), 3u);
  EXPECT_EQ(Reload().pause_reason, "hourly_limit");
  Advance(3601);
  Run();
  EXPECT_EQ(Charges(), 4u) << "this pause ends by itself";
}

TEST_P(ChargingTest, OneChargeMustBeEnough) {
  auto refused = replica_->admin.UpdateReload(
      "acme", {true, 1000 * kNanoPerUsd, kNanoPerUsd, 5000 * kNanoPerUsd}, "ann");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().field, "auto_reload.amount_usd");
}

}  // namespace
}  // namespace tollgate::billing::payments
