#include "services/billing/payments/reconcile.h"

#include <gtest/gtest.h>

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

class ReconcileTest : public PaymentTest {
 protected:
  Result<Reconciliation> Run(Replica& replica) {
    return Reconcile(replica.engine, clock_.WallUs() - 86'400'000'000, clock_.WallUs());
  }
  // Changes the database behind the ledger's back.
  void Execute(const std::string& text) { ASSERT_TRUE((*database_->Borrow())->Execute(text).ok()); }
  int64_t Sum(EntryKind kind) {
    int64_t sum = 0;
    for (const char* workspace : {"acme", "other"}) {
      for (const Entry& entry : Entries(workspace)) {
        if (entry.kind == kind) sum += entry.amount_nano_usd;
      }
    }
    return sum;
  }
  std::vector<std::string> Kinds(Replica& replica) {
    auto result = Run(replica);
    EXPECT_TRUE(result.ok());
    std::vector<std::string> kinds;
    if (result.ok()) {
      for (const Difference& one : result->differences) kinds.emplace_back(Name(one.kind));
    }
    return kinds;
  }
};
INSTANTIATE_TEST_SUITE_P(All, ReconcileTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(ReconcileTest, EachKindOfDifferenceIsFound) {
  using Names = std::vector<std::string>;
  auto replica = Make();
  const Payment first = Buy(*replica, "r1");
  EXPECT_EQ(Kinds(*replica), Names{"MISSING_CREDIT"}) << "paid but not processed yet";
  replica->engine.RunOnce();
  EXPECT_EQ(Kinds(*replica), Names{});

  stripe_.ForeignCharge(500);
  Advance(1);
  EXPECT_EQ(Kinds(*replica), Names{"UNKNOWN_CHARGE"});
  Advance(2 * 86400);

  Buy(*replica, "r2");
  replica->engine.RunOnce();
  ASSERT_TRUE(
      replica->port.Submit(AddCredit{"acme", "pay-forged", kTen, false, "mallory", "no payment"})
          ->ok);
  EXPECT_EQ(Kinds(*replica), Names{"MISSING_CHARGE"}) << "credit without a payment";
  Advance(2 * 86400);

  const Payment third = Buy(*replica, "r3");
  replica->engine.RunOnce();
  auto stored = replica->admin.Get("acme", third.id);
  ASSERT_TRUE(replica->port
                  .Submit(Correct{.workspace = "acme",
                                  .command_id = "refund-forged",
                                  .kind = CommandKind::kRefund,
                                  .amount_nano_usd = kNanoPerUsd,
                                  .actor = "mallory",
                                  .reason = "x",
                                  .reference = third.id})
                  ->ok);
  EXPECT_EQ(Kinds(*replica), (Names{"REFUND", "MISSING_CHARGE"}));
}

// Rule: each top-up and each refund of the ledger belongs to a payment or stands in the result as
// made by hand, and the totals of the provider, the payments and the ledger are equal.
TEST_P(ReconcileTest, PaidCreditWithoutAPaymentStandsInTheResultAsMadeByHand) {
  auto replica = Make();
  const Payment payment = Buy(*replica, "r1");
  replica->engine.RunOnce();
  ASSERT_TRUE(
      replica->admin.RefundPayment("acme", payment.id, 3 * kNanoPerUsd, "left", "f1", "ann").ok());
  // Another workspace, where no payment was ever made.
  constexpr int64_t kMillion = 1'000'000 * kNanoPerUsd;
  ASSERT_TRUE(
      replica->port.Submit(AddCredit{"other", "c1", kMillion, false, "mallory", "an invoice"})->ok);
  Adjust("other", CommandKind::kRefund, 2 * kTen, "a1");
  Grant("other", kTen, "g1");  // was not paid for
  auto result = Run(*replica);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  ASSERT_EQ(result->by_hand.size(), 2u);
  EXPECT_EQ(result->by_hand[0].workspace, "other");
  EXPECT_EQ(result->by_hand[0].command_id, "c1");
  EXPECT_EQ(result->by_hand[0].actor, "mallory");
  EXPECT_EQ(result->by_hand[0].reason, "an invoice");
  EXPECT_EQ(result->by_hand[1].command_id, "a1");
  for (const int64_t nano_usd :
       {result->charged.provider_nano_usd, result->charged.payments_nano_usd,
        result->charged.ledger_nano_usd}) {
    EXPECT_EQ(nano_usd, kTen);
  }
  EXPECT_EQ(result->charged.by_hand_nano_usd, kMillion);
  EXPECT_EQ(result->refunded.provider_nano_usd, 3 * kNanoPerUsd);
  EXPECT_TRUE(result->refunded.tie_out());
  EXPECT_EQ(result->refunded.by_hand_nano_usd, 2 * kTen);
  // The sum is closed: all top-ups and refunds of the ledger are in it.
  EXPECT_EQ(result->charged.ledger_nano_usd + result->charged.by_hand_nano_usd,
            Sum(EntryKind::kTopup));
  EXPECT_EQ(result->refunded.ledger_nano_usd + result->refunded.by_hand_nano_usd,
            Sum(EntryKind::kRefund));
}

TEST_P(ReconcileTest, ATransferIsProvedByItsReferenceOnly) {
  auto manual = MakeManual();
  for (const char* reference : {"bank 17", ""}) {
    auto made = manual->admin.Create("acme", kTen, std::string("r") + reference, "ann");
    ASSERT_TRUE(made.ok());
    ASSERT_TRUE(manual->admin.Confirm("acme", made->id, reference, "bob", {"bob", "bob"}).ok());
  }
  Advance(1);
  auto result = Run(*manual);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->differences.empty());
  EXPECT_EQ(result->charged.provider_nano_usd, kTen);
  EXPECT_TRUE(result->charged.tie_out());
  EXPECT_EQ(result->charged.by_hand_nano_usd, kTen);
  ASSERT_EQ(result->by_hand.size(), 1u);
}

// The ledger has what the payments' tables have lost.
TEST_P(ReconcileTest, CreditWhosePaymentIsGoneIsADifferenceInAnyWorkspace) {
  auto replica = Make();
  const Payment payment = Buy(*replica, "r1");
  replica->engine.RunOnce();
  ASSERT_TRUE(
      replica->admin.RefundPayment("acme", payment.id, 3 * kNanoPerUsd, "left", "f1", "ann").ok());
  Advance(2 * 86400);  // the provider's list does not show it any more
  Execute("DELETE FROM payment");
  EXPECT_EQ(Kinds(*replica), (std::vector<std::string>{"MISSING_CHARGE", "REFUND"}));
}

TEST_P(ReconcileTest, AChangedLogIsFound) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  ASSERT_EQ(Kinds(*replica), std::vector<std::string>{});
  ASSERT_TRUE((*replica->database->Borrow())
                  ->Execute("UPDATE payment_event SET actor = 'mallory' WHERE sequence = 1")
                  .ok());
  EXPECT_EQ(Kinds(*replica), std::vector<std::string>{"LOG"});
}

// Rule: the log of changes ends where its head says, also in a workspace without payments.
TEST_P(ReconcileTest, ALogWhoseEndWasCutIsFound) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  const std::string last = " WHERE sequence = (SELECT max(sequence) FROM payment_event)";
  ASSERT_TRUE(VerifyLedger(*database_, "")->ok());
  Execute("DELETE FROM payment_event" + last);
  EXPECT_EQ(Kinds(*replica), std::vector<std::string>{"LOG"});
  auto report = VerifyLedger(*database_, "");
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->violations.size(), 1u);
  EXPECT_NE(report->violations[0].find("the log of payments ends"), std::string::npos);
  Advance(2 * 86400);
  EXPECT_EQ(Kinds(*replica), std::vector<std::string>{"LOG"});
  Execute("DELETE FROM payment_head");
  EXPECT_EQ(Kinds(*replica), std::vector<std::string>{"LOG"});
  EXPECT_FALSE(VerifyLedger(*database_, "")->ok());
}

TEST_P(ReconcileTest, AProviderThatFailsGivesNoResult) {
  auto replica = Make();
  Buy(*replica, "r1");
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_FALSE(Reconcile(replica->engine, 0, clock_.WallUs()).ok());
}

}  // namespace
}  // namespace tollgate::billing::payments
