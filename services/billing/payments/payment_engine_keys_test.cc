// A charge whose result is unknown does not stop auto-reload for long: after an error that the
// provider repeats for its idempotency key, the charge gets another key; a second charge is given
// back; a person can end what stays unknown (ADR 0049).
#include <gtest/gtest.h>

#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/reconcile.h"
#include "services/billing/payments/testing/charging_world.h"

namespace tollgate::billing::payments {
namespace {

class ChargeKeysTest : public ChargingWorld {
 protected:
  // The first call of a charge gets this fault.
  void SpendWith(const ScriptedStripe::Faults& faults) {
    Start();
    stripe_.TakeEvents();
    stripe_.SetFaults(faults);
    Spend("acme", 6 * kNanoPerUsd);
    replica_->engine.RunOnce();
    replica_->engine.RunOnce();
    stripe_.SetFaults({});
  }
  // Runs the engine every minute.
  void Minutes(int count) {
    for (int i = 0; i < count; ++i) {
      Advance(60);
      replica_->engine.RunOnce();
    }
  }
  int64_t KeptCents() {
    int64_t cents = 0;
    for (const ScriptedStripe::Intent& intent : stripe_.intents()) {
      if (intent.status == "succeeded") cents += intent.amount_cents - intent.refunded_cents;
    }
    return cents;
  }
  void ExpectBooksTieOut(int64_t credited_usd) {
    int64_t credited = 0;
    for (const auto& posting : *LedgerServicePort(*ledger_).ReadPostings("acme")) {
      credited += posting.amount_nano_usd;
    }
    EXPECT_EQ(credited, credited_usd * kNanoPerUsd);
    EXPECT_EQ(KeptCents() * kNanoPerCent, credited);
    const auto books = Reconcile(replica_->engine, clock_.WallUs() - kDay, clock_.WallUs() + kDay);
    ASSERT_TRUE(books.ok());
    EXPECT_TRUE(books->differences.empty())
        << Name(books->differences.front().kind) << " " << books->differences.front().provider_id;
    ExpectVerified(*replica_, "acme");
  }

  static constexpr int64_t kDay = 86'400'000'000;
};
INSTANTIATE_TEST_SUITE_P(All, ChargeKeysTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(ChargeKeysTest, OneErrorDoesNotStopChargesForADay) {
  SpendWith({.error_before = 1000});
  Minutes(9);
  EXPECT_EQ(Charges(), 0u) << "the provider repeats its error";
  EXPECT_EQ(Newest().state, PaymentState::kUnknown);
  Minutes(3);
  ASSERT_EQ(Charges(), 1u);
  EXPECT_EQ(stripe_.intents().back().payment, Newest().id) << "the same payment";
  EXPECT_EQ(Newest().keys, 2);
  EXPECT_TRUE(Newest().credited);
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
  EXPECT_EQ(Reload().month_charged_nano_usd, kTen);
  ExpectBooksTieOut(20);
}

TEST_P(ChargeKeysTest, AnErrorAfterTheWorkIsFoundAndNotSentAgain) {
  SpendWith({.error_after = 1000});
  Minutes(30);
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Newest().keys, 1);
  ExpectBooksTieOut(20);
}

TEST_P(ChargeKeysTest, NoOtherKeyWhileTheProviderCannotBeAsked) {
  SpendWith({.error_before = 1000});
  stripe_.SetFaults({.error_before = 1000});
  Minutes(30);
  EXPECT_EQ(Newest().keys, 1) << "it may know the charge";
  stripe_.SetFaults({});
  Minutes(2);
  ExpectBooksTieOut(20);
}

TEST_P(ChargeKeysTest, AProviderThatKeepsFailingGetsFourKeysAndIsGivenUp) {
  SpendWith({.charge_error = 1000});
  const Payment payment = Newest();
  stripe_.SetFaults({.charge_error = 1000});
  for (int i = 0; i < 9; ++i) {
    Minutes(3);
    Advance(3420);
  }
  EXPECT_EQ(Newest().id, payment.id);
  EXPECT_EQ(Newest().keys, 4);
  Advance(26 * 3600);
  replica_->engine.RunDue();
  EXPECT_EQ(Newest().state, PaymentState::kDeclined);
  EXPECT_EQ(Newest().reason, "lost");
  EXPECT_EQ(Charges(), 0u);
}

TEST_P(ChargeKeysTest, ASecondChargeThatAppearsLaterIsGivenBack) {
  SpendWith({.error_late = 1000});
  Minutes(12);
  ASSERT_EQ(Charges(), 1u);
  const std::string first = Newest().provider_id;
  Minutes(20);
  ASSERT_EQ(Charges(), 2u) << "the first call had an effect after all";
  EXPECT_EQ(Topups("acme"), 2) << "one of the page, one of the charge";
  Advance(3600);
  Minutes(2);
  EXPECT_EQ(Newest().provider_id, first);
  EXPECT_EQ(Topups("acme"), 2);
  EXPECT_EQ(Reload().state, ReloadState::kIdle) << "the owner need not know";
  ExpectBooksTieOut(20);
  Advance(26 * 3600);
  Minutes(1);
  EXPECT_EQ(Newest().check_us, 0) << "the provider is not asked for ever";
}

TEST_P(ChargeKeysTest, AWebhookOfTheSecondChargeGivesItBackAtOnce) {
  SpendWith({.error_late = 1000});
  Minutes(12);
  stripe_.TakeEvents();
  Minutes(20);
  ASSERT_EQ(Charges(), 2u);
  const int calls = stripe_.calls("/v1/refunds");
  for (int i = 0; i < 2; ++i) DeliverAll(*replica_);
  replica_->engine.RunOnce();
  replica_->engine.RunOnce();
  EXPECT_GT(stripe_.calls("/v1/refunds"), calls);
  ExpectBooksTieOut(20);
}

TEST_P(ChargeKeysTest, ASecondChargeThatCannotBeGivenBackBecomesCredit) {
  SpendWith({.error_late = 1000});
  Minutes(12);
  stripe_.SetRefundRefused(true);
  Minutes(20);
  Advance(3600);
  Minutes(2);
  ExpectBooksTieOut(30);
}

TEST_P(ChargeKeysTest, AChargeThatTheRulesForbidGetsNoOtherKey) {
  SpendWith({.error_before = 1000});
  ASSERT_TRUE(replica_->admin.UpdateReload("acme", {.enabled = false}, "ann").ok());
  Minutes(90);
  EXPECT_EQ(Charges(), 0u);
  EXPECT_EQ(Newest().keys, 1);
  EXPECT_EQ(Newest().state, PaymentState::kCancelled);
}

TEST_P(ChargeKeysTest, APersonGivesUpAnAmountThatIsNotOurs) {
  Start();
  stripe_.SetFaults({.wrong_amount = 1000});
  Spend("acme", 6 * kNanoPerUsd);
  Run();
  const Payment wrong = Newest();
  ASSERT_EQ(wrong.reason, "amount_mismatch");
  EXPECT_EQ(replica_->admin.Cancel("acme", wrong.id, "not ours", "ann").error().reason,
            "PAYMENT_STATE");
  EXPECT_EQ(replica_->admin.Cancel("acme", wrong.id, "", "ann", true).error().field, "reason");
  auto given_up = replica_->admin.Cancel("acme", wrong.id, "returned by hand", "ann", true);
  ASSERT_TRUE(given_up.ok()) << given_up.error().message;
  EXPECT_EQ(given_up->state, PaymentState::kCancelled);
  EXPECT_EQ(given_up->reason, "given up: returned by hand");
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
  EXPECT_EQ(Reload().declines, 0);
  EXPECT_EQ(Reload().month_charged_nano_usd, 0);
  DeliverAll(*replica_);
  Run();
  EXPECT_EQ(replica_->admin.Get("acme", wrong.id)->state, PaymentState::kCancelled)
      << "an event does not bring it back";
  EXPECT_NE(Newest().id, wrong.id) << "auto-reload goes on";
  EXPECT_EQ(Topups("acme"), 1);
  stripe_.SetFaults({});
}

TEST_P(ChargeKeysTest, AChargeThatWasGivenUpIsCreditedWhenItIsFoundPaid) {
  SpendWith({.error_late = 1000});
  ASSERT_EQ(replica_->admin.Cancel("acme", Newest().id, "wait no longer", "ann", true)->state,
            PaymentState::kCancelled);
  ASSERT_TRUE(replica_->admin.UpdateReload("acme", {.enabled = false}, "ann").ok());
  const std::string id = Newest().id;
  EXPECT_EQ(replica_->admin.Cancel("acme", id, "again", "ann", true)->reason,
            "given up: wait no longer");
  Advance(86'400);
  Minutes(2);
  EXPECT_TRUE(replica_->admin.Get("acme", id)->credited);
  ExpectBooksTieOut(20);
}

TEST_P(ChargeKeysTest, OnlyAnUnknownPaymentCanBeGivenUp) {
  const Payment paid = Start();
  EXPECT_EQ(replica_->admin.Cancel("acme", paid.id, "no", "ann", true).error().reason,
            "PAYMENT_STATE");
  auto open = replica_->admin.Create("acme", kTen, "second", "ann");
  EXPECT_EQ(replica_->admin.Cancel("acme", open->id, "no", "ann", true).error().reason,
            "PAYMENT_STATE");
}

TEST_P(ChargeKeysTest, AnErrorDoesNotKeepACustomerFromPayingForADay) {
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_FALSE(replica_->engine.EnsureCustomer("other").ok());
  EXPECT_FALSE(replica_->admin.Create("acme", kTen, "page", "ann").ok());
  stripe_.SetFaults({});
  EXPECT_TRUE(replica_->engine.EnsureCustomer("other").ok());
  Advance(70);
  auto page = replica_->admin.Create("acme", kTen, "page", "ann");
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_NE(page->checkout_url, "");
}

}  // namespace
}  // namespace tollgate::billing::payments
