// Each change by a person writes an audit entry in the same transaction.
#include "services/billing/payments/payment_admin.h"

#include "common/audit/log.h"
#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

class PaymentAdminTest : public PaymentTest {
 protected:
  // Audit entries of people as "actor action subject: detail", oldest first.
  std::vector<std::string> Entries() {
    std::vector<std::string> texts;
    auto connection = database_->Borrow();
    EXPECT_TRUE(connection.ok());
    auto page = audit::ReadPage(**connection, audit::kEntries, 0, 1000);
    EXPECT_TRUE(page.ok());
    audit::Verifier chain;
    for (const audit::Record& record : page->records) {
      EXPECT_TRUE(chain.Add(record));
      if (record.address != "192.0.2.7") continue;
      EXPECT_EQ(record.workspace_id, "acme");
      EXPECT_FALSE(record.request_id.empty());
      texts.push_back(record.actor + " " + record.action + " " + record.subject + ": " +
                      record.detail);
    }
    EXPECT_TRUE(chain.Finish(page->head.sequence, page->head.hash));
    return texts;
  }
  static admin::Person Person(const std::string& who) { return {"user:" + who, "user:" + who}; }
  static AdminResult<Payment> Confirm(Replica& replica, const std::string& payment,
                                      const std::string& who, const std::string& call,
                                      const std::string& reference = "bank 17") {
    return replica.admin.Confirm("acme", payment, reference, By(who, call), Person(who));
  }
  static audit::Origin By(const std::string& who, const std::string& call) {
    return {"user:" + who, "192.0.2.7", call};
  }
};

INSTANTIATE_TEST_SUITE_P(All, PaymentAdminTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(PaymentAdminTest, EachChangeOfAPaymentHasOneEntryHoweverOftenItIsRepeated) {
  auto manual = MakeManual();
  auto made = manual->admin.Create("acme", kTen, "r1", By("ann", "r1"));
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(manual->admin.Create("acme", kTen, "r1", By("ann", "r1")).ok());
  EXPECT_FALSE(manual->admin.Create("acme", 2 * kTen, "r1", By("ann", "r1")).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Confirm(*manual, made->id, "bob", "r2").ok());
  }
  EXPECT_FALSE(manual->admin.Cancel("acme", made->id, "", By("bob", "r3")).ok());
  auto second = manual->admin.Create("acme", kTen, "r4", By("ann", "r4"));
  ASSERT_TRUE(manual->admin.Cancel("acme", second->id, "never came", By("bob", "r5")).ok());
  ASSERT_TRUE(manual->admin.Cancel("acme", second->id, "never came", By("bob", "r5")).ok());
  EXPECT_FALSE(
      manual->admin.RefundPayment("acme", second->id, kTen, "sorry", "r6", By("bob", "r6")).ok());
  auto refund =
      manual->admin.RefundPayment("acme", made->id, kTen / 2, "sorry", "r7", By("bob", "r7"));
  ASSERT_TRUE(refund.ok()) << refund.error().message;
  EXPECT_EQ(Entries(),
            (std::vector<std::string>{
                "user:ann payment.create payment/" + made->id + ": awaiting_transfer, 10 USD",
                "user:bob payment.confirm payment/" + made->id +
                    ": awaiting_transfer to succeeded, 10 USD: bank 17",
                "user:ann payment.create payment/" + second->id + ": awaiting_transfer, 10 USD",
                "user:bob payment.cancel payment/" + second->id +
                    ": awaiting_transfer to cancelled, 10 USD: never came",
                "user:bob payment.refund refund/" + refund->id + ": requested, 5 USD: sorry"}));
  ExpectVerified(*manual, "acme");
}

// ADR 0053. The limit is 100 USD.
TEST_P(PaymentAdminTest, ATransferBeyondTheLimitOfAPersonWaitsForASecondOne) {
  auto manual = MakeManual();
  auto large = manual->admin.Create("acme", 11 * kTen, "r1", By("ann", "r1"));
  for (int i = 0; i < 2; ++i) {
    auto first = Confirm(*manual, large->id, "bob", "r2");
    ASSERT_TRUE(first.ok()) << first.error().message;
    EXPECT_EQ(first->state, PaymentState::kAwaitingTransfer);
    EXPECT_EQ(first->confirmed_by, "user:bob");
  }
  EXPECT_EQ(Confirm(*manual, large->id, "bob", "r3")->state, PaymentState::kAwaitingTransfer)
      << "never the same person twice";
  manual->engine.RunOnce();
  EXPECT_EQ(Paid("acme"), 0);
  EXPECT_EQ(Confirm(*manual, large->id, "carl", "r4", "bank 18").error().reason, "INVALID_FIELD");
  admin::Person nobody = Person("carl");
  nobody.unproved = admin::Precondition("PERSON_NOT_PROVED", "").error;
  EXPECT_EQ(
      manual->admin.Confirm("acme", large->id, "bank 17", By("carl", "r5"), nobody).error().reason,
      "PERSON_NOT_PROVED");
  auto second = Confirm(*manual, large->id, "carl", "r6");
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(second->credited);
  EXPECT_EQ(Paid("acme"), 11 * kTen);
  EXPECT_TRUE(Confirm(*manual, large->id, "carl", "r6")->credited);
  EXPECT_EQ(Topups("acme"), 1);
  ExpectVerified(*manual, "acme");
}

TEST_P(PaymentAdminTest, TransfersThatOnePersonConfirmsAreSummedUp) {
  auto manual = MakeManual();
  std::vector<std::string> ids;
  for (const char* call : {"r1", "r2", "r3"}) {
    ids.push_back(manual->admin.Create("acme", 4 * kTen, call, By("ann", call))->id);
  }
  EXPECT_TRUE(Confirm(*manual, ids[0], "bob", "c1")->credited);
  EXPECT_TRUE(Confirm(*manual, ids[0], "bob", "c1")->credited) << "a repetition does not count";
  EXPECT_TRUE(Confirm(*manual, ids[1], "bob", "c2")->credited);
  admin::Person nobody = Person("bob");
  nobody.unproved = admin::Precondition("PERSON_NOT_PROVED", "").error;
  EXPECT_EQ(
      manual->admin.Confirm("acme", ids[2], "bank 17", By("bob", "c3"), nobody).error().reason,
      "PERSON_NOT_PROVED");
  EXPECT_FALSE(Confirm(*manual, ids[2], "bob", "c4")->credited);
  EXPECT_EQ(Paid("acme"), 8 * kTen);
  EXPECT_TRUE(Confirm(*manual, ids[2], "carl", "c5")->credited);
}

TEST_P(PaymentAdminTest, SoHaveAutoReloadAndSavedCards) {
  auto replica = Make();
  auto url = replica->admin.SetupMethod("acme", "r1", By("ann", "r1"));
  ASSERT_TRUE(url.ok()) << url.error().message;
  ASSERT_TRUE(replica->admin.SetupMethod("acme", "r1", By("ann", "r1")).ok());
  const std::string page = url->substr(url->rfind('/') + 1);
  const std::string card = stripe_.SaveCard(page);
  Advance(31);
  replica->engine.RunOnce();
  ASSERT_TRUE(
      replica->admin.UpdateReload("acme", {true, 5 * kNanoPerUsd, kTen, 10 * kTen}, By("ann", "r2"))
          .ok());
  ASSERT_TRUE(replica->admin.DeleteMethod("acme", card, By("ann", "r3")).ok());
  EXPECT_FALSE(replica->admin.DeleteMethod("acme", card, By("ann", "r4")).ok());
  EXPECT_EQ(Entries(),
            (std::vector<std::string>{
                "user:ann payment_method.setup workspace/acme: " + page,
                "user:ann auto_reload.update reload: idle, 10 USD: on threshold=5.00 amount=10.00 "
                "ceiling=100.00",
                "user:ann payment_method.delete method/" + card + ": saved to deleted"}));
}

}  // namespace
}  // namespace tollgate::billing::payments
