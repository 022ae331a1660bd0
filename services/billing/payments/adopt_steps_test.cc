// A database that was restored to a time before a payment that the provider has.
#include <gtest/gtest.h>

#include "services/billing/payments/reconcile.h"
#include "services/billing/payments/testing/payment_world.h"
#include "services/billing/payments/testing/workspace_backup.h"

namespace tollgate::billing::payments {
namespace {

constexpr int64_t kHour = 3'600'000'000;

class AdoptStepsTest : public PaymentTest {
 protected:
  void Execute(const std::string& text) { ASSERT_TRUE((*database_->Borrow())->Execute(text).ok()); }
  // The customer pays ten, and the database forgets it.
  void LosePayment(Replica& replica) {
    lost_ = Buy(replica, "lost");
    Execute("DELETE FROM payment WHERE id = '" + lost_.id + "'");
  }
  Reconciliation Compare(Replica& replica, bool adopt, int64_t back_us = 24 * kHour) {
    auto result =
        Reconcile(replica.engine, clock_.WallUs() - back_us, clock_.WallUs() + 1'000'000, adopt);
    EXPECT_TRUE(result.ok());
    return result.ok() ? *std::move(result) : Reconciliation();
  }

  Payment lost_;
};
INSTANTIATE_TEST_SUITE_P(All, AdoptStepsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

// Rule: an event of ours without a payment makes it, with the provider's state, and credits it
// once.
TEST_P(AdoptStepsTest, ALateEventOfALostPaymentMakesItAndCreditsItOnce) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  stripe_.TakeEvents();
  LosePayment(*replica);
  const auto events = stripe_.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  for (const ScriptedStripe::Event& event : {events[1], events[0]}) {
    EXPECT_EQ(Deliver(*replica, event.body), 200);
    replica->engine.RunOnce();
  }
  EXPECT_EQ(Paid("acme"), 2 * kTen);
  EXPECT_EQ(Topups("acme"), 2);
  const auto made = replica->admin.Get("acme", lost_.id);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->state, PaymentState::kSucceeded);
  EXPECT_TRUE(made->credited);
  EXPECT_EQ(made->amount_nano_usd, kTen);
  Advance(1);
  EXPECT_TRUE(Compare(*replica, false).differences.empty());
  ExpectVerified(*replica, "acme");
}

TEST_P(AdoptStepsTest, AnEventOfAnotherInstallationsCustomerMakesNothing) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  stripe_.TakeEvents();
  LosePayment(*replica);
  Execute("UPDATE provider_customer SET customer = 'cus_other'");
  DeliverAll(*replica);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_FALSE(replica->admin.Get("acme", lost_.id).ok());
}

// Rule: after a restore auto-reload charges nothing until a reconciliation has run.
TEST_P(AdoptStepsTest, AfterARestoreReloadsWaitUntilAReconciliationHasAdoptedWhatWasLost) {
  auto replica = Make();
  Grant("acme", 4 * kNanoPerUsd, "g1");
  SaveCard(*replica, "acme");
  LosePayment(*replica);
  MarkRestored(kHour);
  EnableReload(*replica, "acme");
  const auto charges = [&] {
    Advance(60);
    for (int i = 0; i < 2; ++i) replica->engine.RunOnce();  // triggers, then sends
    return stripe_.intents().size();
  };
  EXPECT_EQ(charges(), 1u) << "only what the customer has paid";
  Reconciliation result = Compare(*replica, false);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(Name(result.differences[0].kind), "LOST_PAYMENT");
  EXPECT_EQ(result.differences[0].provider_nano_usd, kTen);
  EXPECT_TRUE(result.reloads_wait);
  EXPECT_EQ(charges(), 1u);

  result = Compare(*replica, true, kHour / 60);
  EXPECT_TRUE(result.reloads_wait) << "a period that does not reach back to the restored time";
  result = Compare(*replica, true);
  EXPECT_TRUE(result.differences.empty());
  EXPECT_FALSE(result.reloads_wait);
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(Topups("acme"), 1);
  EXPECT_EQ(charges(), 1u) << "the balance is not low";
  Spend("acme", 10 * kNanoPerUsd);
  EXPECT_EQ(charges(), 2u) << "auto-reload goes on";
  EXPECT_EQ(Compare(*replica, true).adopted, 0);
}

// Rule: a charge of auto-reload that was lost counts against the month's ceiling.
TEST_P(AdoptStepsTest, ALostReloadCountsAgainstTheCeiling) {
  PaymentEngine::Options options;
  options.survives = [](std::string_view point) { return point != "after_call"; };
  auto crashing = Make(std::move(options));
  Grant("acme", 20 * kNanoPerUsd, "g1");
  SaveCard(*crashing, "acme");
  EnableReload(*crashing, "acme", 5, 10, 10);
  Spend("acme", 16 * kNanoPerUsd);
  crashing->engine.RunOnce();
  crashing->engine.RunOnce();
  ASSERT_EQ(stripe_.intents().size(), 1u);
  Execute("DELETE FROM payment");
  Execute("UPDATE auto_reload SET state = 1, month_charged = 0, reload_id = ''");
  MarkRestored(kHour);
  auto replica = Make();
  EXPECT_EQ(Compare(*replica, true).adopted, 1);
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(replica->admin.GetReload("acme")->month_charged_nano_usd, kTen);
  Spend("acme", 10 * kNanoPerUsd);
  Advance(60);
  for (int i = 0; i < 2; ++i) replica->engine.RunOnce();
  EXPECT_EQ(stripe_.intents().size(), 1u);
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "monthly_ceiling");
}

// Rule: a charge of auto-reload after a restore is a payment of its own, though the version of the
// settings, from which the lost one was made, comes again.
TEST_P(AdoptStepsTest, ANewReloadIsNeverTakenForOneThatWasLost) {
  auto replica = Make();
  Grant("acme", 4 * kNanoPerUsd, "g1");
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  const auto version = [&] {
    return std::to_string((*replica->store.FindReload("acme"))->version);
  };
  const std::string before = version();
  WorkspaceBackup backup(*database_);
  ASSERT_TRUE(backup.Take("acme").ok());
  for (int i = 0; i < 2; ++i) replica->engine.RunOnce();
  ASSERT_EQ(stripe_.intents().size(), 1u);
  ASSERT_TRUE(backup.Restore("acme").ok());
  ASSERT_EQ(version(), before);
  MarkRestored(kHour);
  Advance(60);
  EXPECT_EQ(Compare(*replica, true).adopted, 1);
  Spend("acme", 10 * kNanoPerUsd);
  Execute("UPDATE auto_reload SET version = " + before);
  Advance(60);
  for (int i = 0; i < 2; ++i) replica->engine.RunOnce();
  EXPECT_EQ(stripe_.intents().size(), 2u);
  EXPECT_EQ(Topups("acme"), 2);
  Advance(60);
  EXPECT_TRUE(Compare(*replica, false).differences.empty());
}

// Rule C6: the card of a charge that was lost is known, so that a dispute rules it out.
TEST_P(AdoptStepsTest, ADisputeOfALostReloadRulesItsCardOut) {
  auto replica = Make();
  Grant("acme", 4 * kNanoPerUsd, "g1");
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  WorkspaceBackup backup(*database_);
  ASSERT_TRUE(backup.Take("acme").ok());
  for (int i = 0; i < 2; ++i) replica->engine.RunOnce();
  ASSERT_EQ(stripe_.intents().size(), 1u);
  ASSERT_TRUE(backup.Restore("acme").ok());
  MarkRestored(kHour);
  Advance(60);
  EXPECT_EQ(Compare(*replica, true).adopted, 1);
  const std::string dispute = stripe_.Dispute(stripe_.intents()[0].id, "warning_needs_response");
  replica->engine.PollDisputes();
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "disputed");
  ASSERT_TRUE(replica->admin.ResumeReload("acme", "ann").ok());
  Spend("acme", 10 * kNanoPerUsd);
  Advance(60);
  for (int i = 0; i < 2; ++i) replica->engine.RunOnce();
  EXPECT_EQ(stripe_.intents().size(), 1u) << dispute;
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "card_disputed");
}

}  // namespace
}  // namespace tollgate::billing::payments
