#include "services/billing/payments/reconcile.h"

#include <gtest/gtest.h>

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

class ReconcileTest : public PaymentTest {
 protected:
  std::vector<std::string> Kinds(Replica& replica) {
    auto result = Reconcile(replica.engine, clock_.WallUs() - 86'400'000'000, clock_.WallUs());
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

TEST_P(ReconcileTest, AProviderThatFailsGivesNoResult) {
  auto replica = Make();
  Buy(*replica, "r1");
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_FALSE(Reconcile(replica->engine, 0, clock_.WallUs()).ok());
}

}  // namespace
}  // namespace tollgate::billing::payments
