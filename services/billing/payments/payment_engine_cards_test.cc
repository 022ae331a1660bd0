// Which saved card auto-reload charges, and what the code of a decline means for it
// (docs/design/charging.md).
#include <gtest/gtest.h>

#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/testing/charging_world.h"

namespace tollgate::billing::payments {
namespace {

class CardsTest : public ChargingWorld {
 protected:
  void SpendBelowThreshold() {
    Spend("acme", 6 * kNanoPerUsd);
    Run();
  }
  // Cards of all charges, in order.
  std::vector<std::string> Charged() {
    std::vector<std::string> cards;
    for (const ScriptedStripe::Intent& intent : stripe_.intents()) {
      if (intent.session.empty()) cards.push_back(intent.method);
    }
    return cards;
  }
  using Cards = std::vector<std::string>;
};
INSTANTIATE_TEST_SUITE_P(All, CardsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(CardsTest, AStolenCardIsNeverChargedAgain) {
  Start();
  stripe_.DeclineCard("pm_acme", "stolen_card");
  SpendBelowThreshold();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Reload().pause_reason, "card_refused");
  EXPECT_EQ(replica_->admin.Methods("acme")->front().refused, "stolen_card");
  stripe_.DeclineCard("pm_acme", "");
  Advance(40 * 86'400);
  Run();
  Resume();
  EXPECT_EQ(Charges(), 1u) << "whoever resumes";
  AddCard("pm_new");
  Resume();
  EXPECT_EQ(Charged(), (Cards{"pm_acme", "pm_new"}));
  EXPECT_EQ(Paid("acme"), 14 * kNanoPerUsd);
  ExpectVerified(*replica_, "acme");
}

TEST_P(CardsTest, TheIssuersAdviceNotToTryAgainIsHeeded) {
  Start();
  stripe_.DeclineCard("pm_acme", "do_not_honor", "do_not_try_again");
  SpendBelowThreshold();
  Advance(3700);
  Run();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_EQ(Reload().pause_reason, "card_refused");
}

TEST_P(CardsTest, ADeclineForNowIsTriedAgain) {
  Start();
  stripe_.DeclineCard("pm_acme", "do_not_honor", "try_again_later");
  SpendBelowThreshold();
  EXPECT_EQ(Reload().state, ReloadState::kBackoff);
  Advance(3700);
  Run();
  EXPECT_EQ(Charges(), 2u);
}

TEST_P(CardsTest, ASecondCardIsChargedWhenTheFirstIsRefusedForGood) {
  AddCard("pm_second");
  Start();
  stripe_.DeclineCard("pm_second", "lost_card");
  SpendBelowThreshold();
  EXPECT_EQ(Charged(), (Cards{"pm_second", "pm_acme"})) << "the newest first";
  EXPECT_EQ(Reload().state, ReloadState::kIdle);
  EXPECT_EQ(Reload().declines, 0);
  EXPECT_EQ(Paid("acme"), 14 * kNanoPerUsd);
}

TEST_P(CardsTest, TheDefaultCardIsChargedFirst) {
  AddCard("pm_second");
  auto chosen = replica_->admin.ChooseMethod("acme", "pm_acme", audit::Origin{"ann"});
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  AddCard("pm_third");
  EXPECT_EQ(replica_->admin.Methods("acme")->front().id, "pm_acme");
  Start();
  SpendBelowThreshold();
  EXPECT_EQ(Charged(), Cards{"pm_acme"});
  EXPECT_EQ(replica_->admin.ChooseMethod("acme", "pm_other", audit::Origin{"ann"}).error().reason,
            "NOT_FOUND");
  ASSERT_TRUE(replica_->admin.DeleteMethod("acme", "pm_acme", "ann").ok());
  EXPECT_EQ(replica_->admin.Methods("acme")->front().id, "pm_third");
}

TEST_P(CardsTest, CreditFromElsewhereDoesNotResetTheCountOfDeclines) {
  Start();
  stripe_.DeclineCard("pm_acme", "insufficient_funds");
  SpendBelowThreshold();
  ASSERT_EQ(Reload().declines, 1);
  Grant("acme", 6 * kNanoPerUsd, "g1");
  Advance(3700);
  Run();
  EXPECT_EQ(Reload().state, ReloadState::kIdle) << "there is enough credit";
  SpendBelowThreshold();
  EXPECT_EQ(Charges(), 2u);
  EXPECT_EQ(Reload().declines, 2);
  Advance(3700);
  Run();
  EXPECT_EQ(Charges(), 2u) << "the second wait is six hours";
}

TEST_P(CardsTest, ABankThatWantsAConfirmationIsNotTriedAgainButTheCustomerGetsAPage) {
  Start();
  stripe_.DeclineCard("pm_acme", "authentication_required");
  SpendBelowThreshold();
  EXPECT_EQ(Reload().pause_reason, "authentication_required");
  const auto page = replica_->admin.Get("acme", Reload().confirm_page);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->amount_nano_usd, kTen);
  ASSERT_NE(page->checkout_url, "");
  Advance(2 * 86'400);
  Run();
  EXPECT_EQ(Charges(), 1u);
  EXPECT_TRUE(replica_->admin.Methods("acme")->front().refused.empty());

  stripe_.PayPage(page->checkout_id);
  DeliverAll(*replica_);
  Run();
  EXPECT_EQ(Paid("acme"), 14 * kNanoPerUsd);
  EXPECT_EQ(Reload().state, ReloadState::kIdle) << "the customer has confirmed";
  ExpectVerified(*replica_, "acme");
}

}  // namespace
}  // namespace tollgate::billing::payments
