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
    ASSERT_TRUE(manual->admin.Confirm("acme", made->id, "bank 17", By("bob", "r2")).ok());
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
