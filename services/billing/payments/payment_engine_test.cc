#include "services/billing/payments/payment_engine.h"

#include <gtest/gtest.h>

#include "common/base/try.h"
#include "common/observability/metrics.h"
#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

const admin::Person kBob = {"bob", "bob"};

class PaymentEngineTest : public PaymentTest {};
INSTANTIATE_TEST_SUITE_P(All, PaymentEngineTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(PaymentEngineTest, ATransferIsCreditOnlyWhenAnOperatorConfirmsItAndOnlyOnce) {
  auto manual = MakeManual();
  auto made = manual->admin.Create("acme", kTen, "r1", "ann");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->state, PaymentState::kAwaitingTransfer);
  EXPECT_EQ(manual->admin.Create("acme", kTen, "r1", "ann")->id, made->id) << "the same request id";
  EXPECT_EQ(manual->admin.Create("acme", 2 * kTen, "r1", "ann").error().reason,
            "REQUEST_ID_REUSED");
  manual->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), 0);
  for (int i = 0; i < 2; ++i) {
    auto confirmed = manual->admin.Confirm("acme", made->id, "bank 17", "bob", kBob);
    ASSERT_TRUE(confirmed.ok()) << confirmed.error().message;
    EXPECT_TRUE(confirmed->credited);
  }
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(Topups("acme"), 1);
  EXPECT_EQ(manual->admin.Cancel("acme", made->id, "", "bob").error().reason, "PAYMENT_STATE");
  auto second = manual->admin.Create("acme", kTen, "r2", "ann");
  ASSERT_TRUE(manual->admin.Cancel("acme", second->id, "never came", "bob").ok());
  EXPECT_EQ(manual->admin.Confirm("acme", second->id, "", "bob", kBob).error().reason,
            "PAYMENT_STATE");
  EXPECT_EQ(Paid("acme"), kTen);
  ExpectVerified(*manual, "acme");
}

TEST_P(PaymentEngineTest, APaidPageIsCreditedOnceByWebhookAndByPolling) {
  auto replica = Make();
  auto made = replica->admin.Create("acme", kTen, "r1", "ann");
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->state, PaymentState::kSubmitted);
  EXPECT_NE(made->checkout_url, "");
  stripe_.PayPage(made->checkout_id);
  auto events = stripe_.TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  for (int i = 0; i < 3; ++i) {
    // Events arrive in reverse order and repeated.
    EXPECT_EQ(Deliver(*replica, events[1].body), 200);
    EXPECT_EQ(Deliver(*replica, events[0].body), 200);
    replica->engine.RunOnce();
  }
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(Topups("acme"), 1);

  // Without webhooks the engine finds the payment by asking.
  auto other = replica->admin.Create("acme", kTen, "r2", "ann");
  stripe_.PayPage(other->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.Get("acme", other->id)->state, PaymentState::kSucceeded);
  EXPECT_EQ(Paid("acme"), 2 * kTen);
  auto third = replica->admin.Create("acme", kTen, "r3", "ann");
  stripe_.ExpirePage(third->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.Get("acme", third->id)->state, PaymentState::kCancelled);
  EXPECT_EQ(Paid("acme"), 2 * kTen);
  ExpectVerified(*replica, "acme");
}

TEST_P(PaymentEngineTest, APageThatCannotBeMadeEndsThePayment) {
  auto replica = Make();
  ASSERT_TRUE(replica->engine.EnsureCustomer("acme").ok());
  stripe_.SetFaults({.refused = 1000});
  EXPECT_EQ(replica->admin.Create("acme", kTen, "r1", "ann").error().reason, "PROVIDER_REFUSED");
  stripe_.SetFaults({.lost_after = 1000});
  EXPECT_EQ(replica->admin.Create("acme", kTen, "r2", "ann").error().reason,
            "PROVIDER_UNAVAILABLE");
  Advance(70);
  stripe_.SetFaults({});
  auto again = replica->admin.Create("acme", kTen, "r2", "ann");
  ASSERT_TRUE(again.ok()) << "the same request id gets the page: " << again.error().message;
  EXPECT_EQ(again->state, PaymentState::kSubmitted);
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_FALSE(replica->admin.Create("acme", kTen, "r3", "ann").ok());
  Advance(26 * 3600);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.Get("acme", DerivedId("payment", "acme", "r3"))->state,
            PaymentState::kCancelled);
}

TEST_P(PaymentEngineTest, CancellingAPageThatWasPaidKeepsThePayment) {
  auto replica = Make();
  auto open = replica->admin.Create("acme", kTen, "r1", "ann");
  EXPECT_EQ(replica->admin.Cancel("acme", open->id, "", "ann")->state, PaymentState::kCancelled);
  auto paid = replica->admin.Create("acme", kTen, "r2", "ann");
  stripe_.PayPage(paid->checkout_id);
  EXPECT_EQ(replica->admin.Cancel("acme", paid->id, "", "ann").error().reason, "PAYMENT_STATE");
  EXPECT_EQ(Paid("acme"), kTen);
}

TEST_P(PaymentEngineTest, APageWithADeclinedTryEndsByItsPageAndCannotBePaidAfterwards) {
  auto replica = Make();
  auto open = replica->admin.Create("acme", kTen, "r1", "ann");
  stripe_.FailPage(open->checkout_id, "card_declined");
  Advance(60);
  replica->engine.RunOnce();
  ASSERT_NE(replica->admin.Get("acme", open->id)->provider_id, "") << "its payment intent is known";
  auto cancelled = replica->admin.Cancel("acme", open->id, "", "ann");
  ASSERT_TRUE(cancelled.ok()) << cancelled.error().message;
  EXPECT_EQ(cancelled->state, PaymentState::kCancelled);
  stripe_.PayPage(open->checkout_id);
  EXPECT_NE(stripe_.intents().front().status, "succeeded");

  // The customer leaves after a declined attempt, and the page expires.
  auto left = replica->admin.Create("acme", kTen, "r2", "ann");
  stripe_.FailPage(left->checkout_id, "card_declined");
  Advance(60);
  replica->engine.RunOnce();
  stripe_.ExpirePage(left->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.Get("acme", left->id)->state, PaymentState::kCancelled);

  // Another card works.
  auto paid = replica->admin.Create("acme", kTen, "r3", "ann");
  stripe_.FailPage(paid->checkout_id, "card_declined");
  Advance(60);
  replica->engine.RunOnce();
  stripe_.PayPage(paid->checkout_id);
  EXPECT_EQ(replica->admin.Cancel("acme", paid->id, "", "ann").error().reason, "PAYMENT_STATE");
  EXPECT_EQ(Paid("acme"), kTen);
}

TEST_P(PaymentEngineTest, ALostAnswerIsResolvedByAskingAndNeverChargesTwice) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  stripe_.SetFaults({.lost_after = 1000});
  replica->engine.RunOnce();  // requests the charge
  replica->engine.RunOnce();  // charges; the answer is lost
  ASSERT_EQ(stripe_.intents().size(), 1u);
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kUnknown);
  EXPECT_EQ(Paid("acme"), 0);
  for (int i = 0; i < 20; ++i) {
    Advance(70);
    replica->engine.RunOnce();
  }
  EXPECT_EQ(stripe_.intents().size(), 1u);
  stripe_.SetFaults({});
  Advance(70);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kIdle);
  EXPECT_EQ(stripe_.intents().size(), 1u);
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(Topups("acme"), 1);
}

TEST_P(PaymentEngineTest, AChargeThatTheProviderNeverSawIsSentAgainUnderItsKeyAndGivenUpAfterADay) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  stripe_.SetFaults({.lost_before = 1000});
  for (int i = 0; i < 5; ++i) {
    replica->engine.RunOnce();
    Advance(70);
  }
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kUnknown);
  // After the provider's idempotency key has expired the engine only asks.
  Advance(24 * 3600);
  stripe_.SetFaults({});
  replica->engine.RunOnce();
  EXPECT_EQ(stripe_.intents().size(), 0u);
  Advance(2 * 3600);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kBackoff);
  EXPECT_EQ(replica->admin.GetReload("acme")->month_charged_nano_usd, 0);
  EXPECT_EQ(stripe_.intents().size(), 0u);
}

TEST_P(PaymentEngineTest, AnAmountThatIsNotOursIsNeverCredited) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  stripe_.SetFaults({.wrong_amount = 1000});
  for (int i = 0; i < 4; ++i) {
    replica->engine.RunOnce();
    Advance(70);
  }
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kUnknown);
  EXPECT_EQ(Paid("acme"), 0);
  stripe_.SetFaults({});
  Advance(3700);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(stripe_.intents().size(), 1u);
}

TEST_P(PaymentEngineTest, DeclinesBackOffThenPauseAndResumeStartsAgain) {
  auto replica = Make();
  const std::string customer = SaveCard(*replica, "acme");
  stripe_.DeclineCustomer(customer, "insufficient_funds");
  EnableReload(*replica, "acme");
  const auto run = [&] {
    for (int i = 0; i < 4; ++i) replica->engine.RunOnce();
  };
  const int64_t waits[] = {3600, 6 * 3600, 24 * 3600};
  for (int declines = 1; declines <= 3; ++declines) {
    run();
    const auto reload = replica->admin.GetReload("acme");
    EXPECT_EQ(reload->state, ReloadState::kBackoff);
    EXPECT_EQ(reload->declines, declines);
    EXPECT_EQ(reload->month_charged_nano_usd, 0);
    EXPECT_EQ(stripe_.intents().size(), static_cast<size_t>(declines));
    Advance(waits[declines - 1] - 1);
    run();
    EXPECT_EQ(stripe_.intents().size(), static_cast<size_t>(declines)) << "too early";
    Advance(1);
  }
  run();
  auto reload = replica->admin.GetReload("acme");
  EXPECT_EQ(reload->state, ReloadState::kPaused);
  EXPECT_EQ(reload->pause_reason, "declined: insufficient_funds");
  Advance(30 * 86400);
  run();
  EXPECT_EQ(stripe_.intents().size(), 4u);
  stripe_.DeclineCustomer(customer, "");
  ASSERT_TRUE(replica->admin.ResumeReload("acme", "ann").ok());
  run();
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kIdle);
  EXPECT_EQ(Paid("acme"), kTen);
  ExpectVerified(*replica, "acme");
}

TEST_P(PaymentEngineTest, TheMonthlyCeilingPausesUntilTheNextMonthOrAHigherCeiling) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme", 5, 10, 25);
  const auto run = [&] {
    for (int i = 0; i < 4; ++i) replica->engine.RunOnce();
  };
  for (int i = 1; i <= 2; ++i) {
    run();
    EXPECT_EQ(Topups("acme"), i);
    Spend("acme", kTen);
  }
  run();
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "monthly_ceiling");
  EXPECT_EQ(stripe_.intents().size(), 2u);
  EnableReload(*replica, "acme", 5, 10, 30);
  run();
  EXPECT_EQ(stripe_.intents().size(), 3u);
  Spend("acme", kTen);
  run();
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kPaused);
  Advance(31 * 86400);
  run();
  EXPECT_EQ(stripe_.intents().size(), 4u) << "a new month";
  EXPECT_EQ(replica->admin.GetReload("acme")->month_charged_nano_usd, kTen);
}

TEST_P(PaymentEngineTest, AutoReloadWithoutACardPauses) {
  auto replica = Make();
  EnableReload(*replica, "acme");
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "no_payment_method");
  EXPECT_EQ(stripe_.intents().size(), 0u);
}

TEST_P(PaymentEngineTest, ABalanceThatWasReadBeforeACreditTriggersNothing) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  const AutoReload seen = *replica->admin.GetReload("acme");
  for (int i = 0; i < 4; ++i) replica->engine.RunOnce();
  ASSERT_EQ(stripe_.intents().size(), 1u);
  Spend("acme", kTen);
  // Another engine, which was stopped after it had read the row.
  replica->engine.Trigger(seen);
  EXPECT_EQ(replica->admin.GetReload("acme")->state, ReloadState::kIdle);
}

TEST_P(PaymentEngineTest, ASavedCardOfAnotherCustomerIsNotTaken) {
  auto replica = Make();
  auto url = replica->admin.SetupMethod("acme", "r1", "ann");
  ASSERT_TRUE(url.ok()) << url.error().message;
  const std::string session = url->substr(url->rfind('/') + 1);
  const std::string card = stripe_.SaveCard(session);
  Advance(31);
  replica->engine.RunOnce();
  auto methods = replica->admin.Methods("acme");
  ASSERT_EQ(methods->size(), 1u);
  EXPECT_EQ(methods->front().id, card);
  EXPECT_EQ(methods->front().last4, "4242");
  EXPECT_EQ(methods->front().expiry, "2029-04");
  ASSERT_TRUE(replica->admin.DeleteMethod("acme", card, "ann").ok());
  EXPECT_TRUE(replica->admin.Methods("acme")->empty());
  EXPECT_EQ(replica->admin.DeleteMethod("acme", card, "ann").error().reason, "NOT_FOUND");
}

TEST_P(PaymentEngineTest, ARefundTakesUnspentPaidCreditFirstAndReachesTheProviderOnce) {
  auto replica = Make();
  auto made = replica->admin.Create("acme", kTen, "r1", "ann");
  stripe_.PayPage(made->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  Spend("acme", 4 * kNanoPerUsd);
  EXPECT_EQ(replica->admin.RefundPayment("acme", made->id, 7 * kNanoPerUsd, "left", "f1", "ann")
                .error()
                .reason,
            "NOT_REFUNDABLE");
  stripe_.SetFaults({.lost_after = 1000});
  auto refund =
      replica->admin.RefundPayment("acme", made->id, 6 * kNanoPerUsd, "left", "f2", "ann");
  ASSERT_TRUE(refund.ok()) << refund.error().message;
  EXPECT_EQ(refund->state, RefundState::kTaken);
  EXPECT_EQ(Paid("acme"), 0);
  stripe_.SetFaults({});
  for (int i = 0; i < 3; ++i) {
    Advance(700);
    replica->engine.RunOnce();
    ASSERT_TRUE(
        replica->admin.RefundPayment("acme", made->id, 6 * kNanoPerUsd, "left", "f2", "ann").ok());
  }
  EXPECT_EQ(replica->store.FindRefund("acme", refund->id)->value().state, RefundState::kSubmitted);
  EXPECT_EQ(stripe_.refunded_cents(stripe_.intents().front().id), 600);
  EXPECT_EQ(replica->admin.RefundPayment("acme", made->id, 5 * kNanoPerUsd, "more", "f3", "ann")
                .error()
                .field,
            "amount_usd");
  ExpectVerified(*replica, "acme");
}

TEST_P(PaymentEngineTest, ADisputeTakesTheCreditOnceAndAWonOneGivesItBack) {
  auto replica = Make();
  auto made = replica->admin.Create("acme", kTen, "r1", "ann");
  stripe_.PayPage(made->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  Spend("acme", 4 * kNanoPerUsd);
  stripe_.TakeEvents();
  const std::string dispute = stripe_.Dispute(stripe_.intents().front().id);
  auto created = stripe_.TakeEvents();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Deliver(*replica, created[0].body), 200);
    replica->engine.RunOnce();
  }
  auto balance = LedgerServicePort(*ledger_).ReadBalance("acme");
  EXPECT_EQ(balance->paid_nano_usd, 0);
  EXPECT_EQ(balance->receivable_nano_usd, 4 * kNanoPerUsd);
  EXPECT_EQ(balance->frozen, Freeze::kDispute);
  EXPECT_TRUE(replica->admin.Get("acme", made->id)->disputed);
  EXPECT_EQ(
      replica->admin.RefundPayment("acme", made->id, kNanoPerUsd, "x", "f1", "ann").error().reason,
      "PAYMENT_DISPUTED");
  stripe_.CloseDispute(dispute, "won");
  auto closed = stripe_.TakeEvents();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Deliver(*replica, closed[0].body), 200);
    replica->engine.RunOnce();
  }
  balance = LedgerServicePort(*ledger_).ReadBalance("acme");
  EXPECT_EQ(balance->paid_nano_usd, 6 * kNanoPerUsd);
  EXPECT_EQ(balance->receivable_nano_usd, 0);
  EXPECT_EQ(balance->frozen, Freeze::kNone);
  EXPECT_FALSE(replica->admin.Get("acme", made->id)->disputed);
}

TEST_P(PaymentEngineTest, AnInquiryTakesNothingUntilItBecomesADispute) {
  auto replica = Make();
  auto made = replica->admin.Create("acme", kTen, "r1", "ann");
  stripe_.PayPage(made->checkout_id);
  Advance(60);
  replica->engine.RunOnce();
  stripe_.TakeEvents();
  const std::string dispute =
      stripe_.Dispute(stripe_.intents().front().id, "warning_needs_response");
  EXPECT_EQ(Deliver(*replica, stripe_.TakeEvents()[0].body), 200);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), kTen);
  stripe_.CloseDispute(dispute, "needs_response");
  EXPECT_EQ(Deliver(*replica, stripe_.TakeEvents()[0].body), 200);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), 0);
  stripe_.CloseDispute(dispute, "lost");
  EXPECT_EQ(Deliver(*replica, stripe_.TakeEvents()[0].body), 200);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), 0);
}

// A database may refuse a transaction that must then run again.
TEST_P(PaymentEngineTest, APauseIsCountedOnceWhenItIsCommitted) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  EnableReload(*replica, "acme");
  const auto pauses = [] {
    return metrics::Counter("tollgate_billing_reloads_paused_total", "").Value();
  };
  const double before = pauses();
  const auto pause = [&](sql::ErrorKind refused) {
    int runs = 0;
    return replica->store.Run("acme", clock_.WallUs(),
                              [&](WorkspaceTx& tx) -> sql::SqlResult<void> {
                                TRY(replica->engine.PauseReload(tx, "refunded"));
                                if (++runs == 1) return Fail{sql::SqlError{refused, "a test"}};
                                return {};
                              });
  };
  EXPECT_FALSE(pause(sql::ErrorKind::kOther).ok());
  EXPECT_EQ(pauses(), before) << "it was rolled back";
  ASSERT_TRUE(pause(sql::ErrorKind::kRetry).ok());
  EXPECT_EQ(pauses(), before + 1) << "its second run was committed";
}

TEST_P(PaymentEngineTest, AChangedLogIsFound) {
  auto replica = MakeManual();
  ASSERT_TRUE(replica->admin.Create("acme", kTen, "r1", "ann").ok());
  ASSERT_TRUE(replica->admin.Create("acme", kTen, "r2", "ann").ok());
  auto events = *replica->store.Events("acme");
  EXPECT_EQ(CheckEvents(events), "");
  events[0].amount_nano_usd += 1;
  EXPECT_NE(CheckEvents(events), "");
  events = *replica->store.Events("acme");
  events.erase(events.begin());
  EXPECT_NE(CheckEvents(events), "");
}

}  // namespace
}  // namespace tollgate::billing::payments
