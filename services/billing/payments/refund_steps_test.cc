#include <gtest/gtest.h>

#include "services/billing/payments/reconcile.h"
#include "services/billing/payments/testing/payment_world.h"
#include "services/billing/payments/testing/workspace_backup.h"

namespace tollgate::billing::payments {
namespace {

constexpr int64_t kFive = 5 * kNanoPerUsd;
constexpr int64_t kSix = 6 * kNanoPerUsd;

class RefundStepsTest : public PaymentTest {
 protected:
  Refund Refunded(Replica& replica, const std::string& request_id, int64_t nano_usd) {
    auto refund =
        replica.admin.RefundPayment("acme", payment_.id, nano_usd, "left", request_id, "ann");
    EXPECT_TRUE(refund.ok());
    return refund.ok() ? *refund : Refund();
  }
  RefundState StateOf(Replica& replica, const std::string& id) {
    return replica.store.FindRefund("acme", id)->value().state;
  }
  void Bought(Replica& replica) {
    payment_ = Buy(replica, "r1");
    replica.engine.RunOnce();
    stripe_.TakeEvents();
  }
  // A refund whose credit is taken, while another one is made at the provider.
  Refund TakenWhile(Replica& replica, int64_t nano_usd, int64_t elsewhere_nano_usd) {
    PaymentEngine::Options options;
    options.survives = [](std::string_view point) { return point != "refund_taken"; };
    auto crashing = Make(std::move(options));
    const Refund refund = Refunded(*crashing, "f1", nano_usd);
    elsewhere_ =
        stripe_.RefundElsewhere(stripe_.intents().front().id, elsewhere_nano_usd / kNanoPerCent);
    Advance(700);
    replica.engine.RunOnce();
    return refund;
  }
  // Expects that one entry returned the credit, that the payment can be refunded again, and that
  // the ledger agrees with the provider.
  void ExpectReturned(Replica& replica, const std::string& id) {
    EXPECT_EQ(StateOf(replica, id), RefundState::kReturned);
    EXPECT_EQ(Paid("acme"), kTen);
    int entries = 0;
    for (const Entry& entry : Entries("acme")) entries += entry.kind == EntryKind::kRefundFailed;
    EXPECT_EQ(entries, 1);
    EXPECT_EQ(replica.admin.Get("acme", payment_.id)->refunded_nano_usd, 0);
    Advance(1);
    auto compared = Reconcile(replica.engine, 0, clock_.WallUs());
    ASSERT_TRUE(compared.ok());
    EXPECT_TRUE(compared->differences.empty());
    ExpectVerified(replica, "acme");
    auto report = VerifyLedger(*database_, "");
    ASSERT_TRUE(report.ok());
    EXPECT_TRUE(report->ok()) << (report->violations.empty() ? "" : report->violations.front());
  }

  Payment payment_;
  std::string elsewhere_;
};
INSTANTIATE_TEST_SUITE_P(All, RefundStepsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(RefundStepsTest, ARefundThatFailsAfterItWasAcceptedGivesTheCreditBackOnce) {
  auto replica = Make();
  Bought(*replica);
  const Refund refund = Refunded(*replica, "f1", kSix);
  ASSERT_EQ(refund.state, RefundState::kSubmitted);
  EXPECT_EQ(Paid("acme"), kTen - kSix);
  stripe_.FailRefund(refund.provider_id);
  const auto events = stripe_.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Deliver(*replica, events[0].body), 200);
    replica->engine.RunOnce();
  }
  // The same event under its other type name.
  std::string other = events[0].body;
  other.replace(other.find("refund.failed"), 13, "charge.refund.updated");
  other.replace(other.find("evt_"), 4, "evt_2");
  EXPECT_EQ(Deliver(*replica, other), 200);
  replica->engine.RunOnce();
  ExpectReturned(*replica, refund.id);
  EXPECT_EQ(Refunded(*replica, "f2", kTen).state, RefundState::kSubmitted) << "paid in another way";
}

TEST_P(RefundStepsTest, WithoutWebhooksAFailedRefundIsFoundByAsking) {
  auto replica = Make();
  Bought(*replica);
  const Refund refund = Refunded(*replica, "f1", kSix);
  stripe_.FailRefund(refund.provider_id);
  Advance(86'400);
  replica->engine.RunOnce();
  ExpectReturned(*replica, refund.id);
}

TEST_P(RefundStepsTest, ARefundThatTheProviderRefusesGivesTheCreditBackOnceWhateverCrashes) {
  int left = 0;
  PaymentEngine::Options options;
  options.survives = [&left](std::string_view) { return --left != 0; };
  auto replica = Make(std::move(options));
  Bought(*replica);
  stripe_.SetRefundRefused(true);
  std::string id;
  for (int crash = 1; crash <= 8; ++crash) {
    left = crash;
    auto refund = replica->admin.RefundPayment("acme", payment_.id, kSix, "left", "f1", "ann");
    ASSERT_TRUE(refund.ok());
    id = refund->id;
    left = 0;
    Advance(700);
  }
  replica->engine.RunOnce();
  ExpectReturned(*replica, id);
}

// The customer has the money, so the credit must not become spendable again.
TEST_P(RefundStepsTest, ARefundThatIsRefusedSinceTheMoneyIsBackAlreadyKeepsItsCredit) {
  auto replica = Make();
  Bought(*replica);
  const Refund refund = TakenWhile(*replica, kSix, kTen);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(StateOf(*replica, refund.id), RefundState::kTaken);
    EXPECT_EQ(Paid("acme"), kTen - kSix);
    Advance(86'400);
    replica->engine.RunOnce();
  }
}

// Rule: a refund that was made at the provider is adopted, never paid a second time.
TEST_P(RefundStepsTest, ARefundOfTheDashboardIsAdoptedAndNotPaidTwice) {
  auto replica = Make();
  Bought(*replica);
  const std::string intent = stripe_.intents().front().id;
  const std::string elsewhere = stripe_.RefundElsewhere(intent, 500);
  const auto refund = [&](int64_t nano_usd, const std::string& call, const std::string& adopt) {
    return replica->admin.RefundPayment("acme", payment_.id, nano_usd, "left", call, "ann", adopt);
  };
  auto refused = refund(5 * kNanoPerUsd, "f1", "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, "REFUNDED_ELSEWHERE");
  EXPECT_NE(refused.error().message.find(elsewhere + " of 5.00 USD"), std::string::npos);
  EXPECT_EQ(refund(4 * kNanoPerUsd, "f2", elsewhere).error().reason, "INVALID_FIELD");
  EXPECT_EQ(refund(5 * kNanoPerUsd, "f3", "re_none").error().reason, "INVALID_FIELD");
  EXPECT_EQ(Paid("acme"), kTen);
  // Adopted once, however often it is asked for.
  for (const char* call : {"f4", "f4", "f5"}) {
    auto adopted = refund(5 * kNanoPerUsd, call, elsewhere);
    ASSERT_TRUE(adopted.ok()) << adopted.error().message;
    EXPECT_EQ(adopted->state, RefundState::kSubmitted);
    EXPECT_EQ(adopted->provider_id, elsewhere);
  }
  EXPECT_EQ(Paid("acme"), 5 * kNanoPerUsd);
  EXPECT_EQ(stripe_.refunded_cents(intent), 500);
  Advance(1);
  auto compared = Reconcile(replica->engine, 0, clock_.WallUs());
  ASSERT_TRUE(compared.ok());
  EXPECT_TRUE(compared->differences.empty());
  // The rest can be refunded as before.
  ASSERT_TRUE(refund(5 * kNanoPerUsd, "f6", "").ok());
  EXPECT_EQ(Paid("acme"), 0);
  EXPECT_EQ(stripe_.refunded_cents(intent), 1000);
  ExpectVerified(*replica, "acme");
}

TEST_P(RefundStepsTest, ARefundThatFindsAnotherOneAtTheProviderWaitsAndIsAdopted) {
  auto replica = Make();
  Bought(*replica);
  const std::string intent = stripe_.intents().front().id;
  const Refund refund = TakenWhile(*replica, kFive, kFive);
  EXPECT_EQ(stripe_.refunded_cents(intent), 500) << "not sent, although the provider would take it";
  auto adopted =
      replica->admin.RefundPayment("acme", payment_.id, kFive, "left", "f2", "ann", elsewhere_);
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(adopted->id, refund.id) << "its credit is taken already";
  EXPECT_EQ(adopted->state, RefundState::kSubmitted);
  EXPECT_EQ(Paid("acme"), kTen - kFive);
  EXPECT_EQ(stripe_.refunded_cents(intent), 500);
  // It fails at payout like a refund of ours.
  stripe_.FailRefund(elsewhere_);
  Advance(86'400);
  replica->engine.RunOnce();
  ExpectReturned(*replica, refund.id);
}

// Rule: what the provider has refunded can be adopted, also if a refund of ours took credit for
// money that it has not any more.
TEST_P(RefundStepsTest, AnAdoptedRefundEndsOneOfOursThatTheProviderHasNoRoomFor) {
  auto replica = Make();
  Bought(*replica);
  const std::string intent = stripe_.intents().front().id;
  const Refund refund = TakenWhile(*replica, kSix, kTen);
  auto adopted =
      replica->admin.RefundPayment("acme", payment_.id, kTen, "left", "f2", "ann", elsewhere_);
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(adopted->state, RefundState::kSubmitted);
  EXPECT_EQ(StateOf(*replica, refund.id), RefundState::kReturned);
  EXPECT_EQ(Paid("acme"), 0);
  EXPECT_EQ(stripe_.refunded_cents(intent), 1000);
  Advance(1);
  auto compared = Reconcile(replica->engine, 0, clock_.WallUs());
  ASSERT_TRUE(compared.ok());
  EXPECT_TRUE(compared->differences.empty());
  ExpectVerified(*replica, "acme");
}

// Rule: a refund of ours that a restore lost, and whose credit was spent meanwhile, is adopted as
// soon as there is credit, and until then no other refund is paid.
TEST_P(RefundStepsTest, ALostRefundWhoseCreditIsSpentIsAdoptedWhenThereIsCredit) {
  auto replica = Make();
  Bought(*replica);
  WorkspaceBackup backup(*database_);
  ASSERT_TRUE(backup.Take("acme").ok());
  const Refund lost = Refunded(*replica, "f1", kFive);
  ASSERT_TRUE(backup.Restore("acme").ok());
  Spend("acme", 8 * kNanoPerUsd);
  const auto refund = [&](int64_t nano_usd, const std::string& call, const std::string& adopt) {
    return replica->admin.RefundPayment("acme", payment_.id, nano_usd, "left", call, "ann", adopt);
  };
  EXPECT_EQ(refund(kFive, "f2", lost.provider_id).error().reason, "NOT_REFUNDABLE");
  const auto another = refund(kNanoPerUsd, "f3", "");
  ASSERT_FALSE(another.ok()) << "the customer is paid twice";
  EXPECT_EQ(another.error().reason, "REFUNDED_ELSEWHERE");
  Buy(*replica, "r2");
  replica->engine.RunOnce();
  auto adopted = refund(kFive, "f4", lost.provider_id);
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(Paid("acme"), 7 * kNanoPerUsd);
  Advance(1);
  auto compared = Reconcile(replica->engine, 0, clock_.WallUs());
  ASSERT_TRUE(compared.ok());
  EXPECT_TRUE(compared->differences.empty());
}

// Rule: a dispute stops refunds that would be paid, not the credit of one that the provider has
// paid.
TEST_P(RefundStepsTest, ARefundOfADisputedPaymentIsAdopted) {
  auto replica = Make();
  Bought(*replica);
  const std::string intent = stripe_.intents().front().id;
  const std::string elsewhere = stripe_.RefundElsewhere(intent, 500);
  stripe_.Dispute(intent);
  replica->engine.PollDisputes();
  Buy(*replica, "r2");
  replica->engine.RunOnce();
  auto adopted =
      replica->admin.RefundPayment("acme", payment_.id, kFive, "left", "f1", "ann", elsewhere);
  ASSERT_TRUE(adopted.ok()) << adopted.error().message;
  EXPECT_EQ(Paid("acme"), kFive);
}

TEST_P(RefundStepsTest, ARefundOfTheProvidersDashboardIsNoneOfOurs) {
  auto replica = Make();
  Bought(*replica);
  const std::string body =
      R"({"id":"evt_x","type":"refund.failed","data":{"object":{"id":"re_none"}}})";
  EXPECT_EQ(Deliver(*replica, body), 200);
  replica->engine.RunOnce();
  EXPECT_TRUE(replica->store.DueEvents(INT64_MAX, 10)->empty());
  EXPECT_EQ(Paid("acme"), kTen);
}

}  // namespace
}  // namespace tollgate::billing::payments
