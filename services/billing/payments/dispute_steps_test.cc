#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/payments/reconcile.h"
#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

constexpr char kInquiry[] = "warning_needs_response";
constexpr char kOpen[] = "needs_response";

class DisputeStepsTest : public PaymentTest {
 protected:
  // Sets the dispute's status at the provider and delivers its event.
  void Says(Replica& replica, const std::string& dispute, const std::string& status) {
    stripe_.CloseDispute(dispute, status);
    DeliverAll(replica);
    replica.engine.RunOnce();
  }
};
INSTANTIATE_TEST_SUITE_P(All, DisputeStepsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(DisputeStepsTest, AnInquiryBeforeThePaymentWasFoundPaidStillBecomesAChargeback) {
  auto replica = Make();
  const Payment payment = Buy(*replica, "r1");
  // The provider flags the charge as disputed from the inquiry on.
  const std::string dispute = stripe_.Dispute(stripe_.intents().front().id, kInquiry);
  replica->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), kTen);
  Says(*replica, dispute, kInquiry);
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(Entries("acme").size(), 1u) << "nothing was taken and given back";
  EXPECT_FALSE(replica->admin.Get("acme", payment.id)->disputed);
  Says(*replica, dispute, kOpen);
  EXPECT_EQ(Paid("acme"), 0);
  EXPECT_TRUE(replica->admin.Get("acme", payment.id)->disputed);
}

TEST_P(DisputeStepsTest, TheBooksEndRightInEveryOrderOfAnswers) {
  auto replica = Make();
  int64_t paid = 0;
  int round = 0;
  for (const char* last : {"won", "lost", "warning_closed"}) {
    std::vector<std::string> order{kInquiry, kOpen, last};
    if (std::string(last) == "warning_closed") order[1] = kInquiry;
    std::sort(order.begin(), order.end());
    do {
      Buy(*replica, "r" + std::to_string(++round));
      replica->engine.RunOnce();
      const std::string dispute = stripe_.Dispute(stripe_.intents().back().id, order[0]);
      // Older answers of the provider may be applied later.
      for (const std::string& status : order) {
        for (int i = 0; i < 2; ++i) Says(*replica, dispute, status);
      }
      if (std::string(last) != "lost") paid += kTen;
      ASSERT_EQ(Paid("acme"), paid) << last << " after " << order[0] << ", " << order[1];
    } while (std::next_permutation(order.begin(), order.end()));
  }
  ExpectVerified(*replica, "acme");
  auto report = VerifyLedger(*database_, "");
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok());
}

TEST_P(DisputeStepsTest, ADisputeThatIsKnownBeforeItsPaymentIsPaidWaitsForIt) {
  auto replica = Make();
  Buy(*replica, "r1");
  stripe_.TakeEvents();  // lost
  stripe_.Dispute(stripe_.intents().front().id, kOpen);
  DeliverAll(*replica);
  const auto due = *replica->store.DueEvents(INT64_MAX, 10);
  ASSERT_EQ(due.size(), 1u);
  replica->engine.StepEvent(due.front());
  EXPECT_EQ(Entries("acme").size(), 0u);
  for (int i = 0; i < 3; ++i) {
    Advance(60);
    replica->engine.RunOnce();
  }
  EXPECT_EQ(Topups("acme"), 1);
  EXPECT_EQ(Paid("acme"), 0);
}

// Rule: disputes are asked for, since webhooks may be lost, and a reconciliation knows them.
TEST_P(DisputeStepsTest, WithoutAWebhookADisputeIsFoundByAsking) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  const std::string dispute = stripe_.Dispute(stripe_.intents().front().id, kOpen);
  stripe_.TakeEvents();  // lost
  const int64_t due_us = clock_.WallUs() + 7 * 86'400'000'000;
  Advance(60);
  const auto differences = [&](bool adopt) {
    auto result = Reconcile(replica->engine, 0, clock_.WallUs(), adopt);
    EXPECT_TRUE(result.ok());
    std::vector<std::string> kinds;
    for (const Difference& one : result->differences) kinds.emplace_back(Name(one.kind));
    return kinds;
  };
  EXPECT_EQ(differences(false), std::vector<std::string>{"DISPUTE"});
  EXPECT_EQ(Paid("acme"), kTen);
  replica->engine.PollDisputes();
  EXPECT_EQ(Paid("acme"), 0);
  EXPECT_EQ(differences(false), std::vector<std::string>{});
  auto counts = replica->store.Count();
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(counts->open_disputes, 1);
  EXPECT_EQ(counts->first_due_us, due_us);
  EXPECT_GT(replica->store.FindDispute("acme", dispute)->value().opened_us, 0);

  stripe_.CloseDispute(dispute, "under_review");
  replica->engine.PollDisputes();
  EXPECT_EQ(replica->store.Count()->first_due_us, 0) << "the evidence was given";
  EXPECT_EQ(replica->store.Count()->open_disputes, 1);
  stripe_.CloseDispute(dispute, "won");
  EXPECT_EQ(differences(false), std::vector<std::string>{"DISPUTE"});
  EXPECT_EQ(differences(true), std::vector<std::string>{});
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_EQ(replica->store.Count()->open_disputes, 0);
}

TEST_P(DisputeStepsTest, WithoutAWebhookAFraudWarningPausesTheReload) {
  auto replica = Make();
  SaveCard(*replica, "acme");
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  EnableReload(*replica, "acme");
  stripe_.WarnOfFraud(stripe_.intents().front().id);
  stripe_.TakeEvents();  // lost
  replica->engine.PollDisputes();
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "fraud_warning");
  EXPECT_EQ(replica->store.Count()->open_disputes, 0);
}

// An older version, which stored no disputes, has taken the credit.
TEST_P(DisputeStepsTest, ADisputeFromBeforeDisputesWereKeptIsGivenBackWhenItIsWon) {
  auto replica = Make();
  Buy(*replica, "r1");
  replica->engine.RunOnce();
  const std::string dispute = stripe_.Dispute(stripe_.intents().front().id, kOpen);
  Says(*replica, dispute, kOpen);
  ASSERT_EQ(Paid("acme"), 0);
  auto connection = database_->Connect();
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->Execute("DELETE FROM payment_dispute").ok());
  for (int i = 0; i < 2; ++i) Says(*replica, dispute, "won");
  EXPECT_EQ(Paid("acme"), kTen);
}

TEST_P(DisputeStepsTest, TwoDisputesOfOnePaymentAreKeptApart) {
  auto replica = Make();
  const Payment payment = Buy(*replica, "r1");
  replica->engine.RunOnce();
  const std::string intent = stripe_.intents().front().id;
  const std::string inquiry = stripe_.Dispute(intent, kInquiry);
  const std::string dispute = stripe_.Dispute(intent, kOpen);
  Says(*replica, dispute, kOpen);
  EXPECT_EQ(Paid("acme"), 0);
  Says(*replica, inquiry, "warning_closed");
  EXPECT_EQ(Paid("acme"), 0) << "closing the inquiry returns no credit";
  EXPECT_TRUE(replica->admin.Get("acme", payment.id)->disputed);
  Says(*replica, dispute, "won");
  EXPECT_EQ(Paid("acme"), kTen);
  EXPECT_FALSE(replica->admin.Get("acme", payment.id)->disputed);
}

}  // namespace
}  // namespace tollgate::billing::payments
