// Reports on a standby (ADR 0038): a real PostgreSQL with a real standby.
#include "common/observability/metrics.h"
#include "services/billing/commit/testing/ledger_service_world.h"
#include "services/billing/rpc/testing/admin_rpc_world.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {
namespace {

using testing::TestPostgres;

class ReportsRpcTest : public AdminRpcTest {
 protected:
  void SetUp() override {
    server_of_ledger_ = TestPostgres::Start();
    if (!server_of_ledger_) {
      ASSERT_FALSE(TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    options_.sql.url = server_of_ledger_->MakeDatabase("service");
    standby_ = server_of_ledger_->StartStandby();
    ASSERT_TRUE(standby_);
    options_.reports.sql.url = standby_->Url("service");
    options_.reports.interval_ms = 20;
    options_.reports.max_lag_ms = 60'000;
  }
  void TearDown() override {
    if (ledger_) AdminRpcTest::TearDown();
  }
  // Opens a wallet and waits until the standby has caught up.
  void Begin() {
    AdminRpcTest::SetUp();
    ASSERT_TRUE(Eventually([&] { return ledger_->Ready(); }));
    ASSERT_EQ(OpenWallet(), "");
    ASSERT_EQ(Grant("g1", "5"), "");
    ASSERT_TRUE(Eventually([&] { return ledger_->report_database() != nullptr; }));
    ASSERT_TRUE(Eventually([&] { return Transactions() == 1; }));
  }
  int Transactions() {
    pb::ListTransactionsRequest request;
    request.set_parent(kWorkspace);
    pb::ListTransactionsResponse response;
    EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, request, response), "");
    return response.transactions_size();
  }
  // what: "pause" or "resume". While paused the standby does not apply what it receives, as during
  // a report that blocks replay.
  void Replay(const std::string& what) {
    auto database = sql::Database::Open({.url = standby_->Url("service")});
    ASSERT_TRUE(database.ok());
    auto connection = (*database)->Borrow();
    ASSERT_TRUE(connection.ok()) << connection.error().message;
    const auto done =
        (*connection)->Query("SELECT pg_wal_replay_" + what + "()", {}, [](const sql::Row&) {});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  static double Reports(const std::string& database) {
    return metrics::Counter("tollgate_billing_reports_total", "", {{"database", database}}).Value();
  }

  std::unique_ptr<TestPostgres> server_of_ledger_, standby_;
};

TEST_F(ReportsRpcTest, ListsMayLackTheLastChangesAndBalancesNever) {
  Begin();
  Replay("pause");
  const double standby = Reports("standby");
  const double failed = Reports("primary_after_failure");
  ASSERT_EQ(Grant("g2", "3"), "");
  EXPECT_EQ(Balance().paid_usd(), "8.00");
  EXPECT_EQ(Transactions(), 1);
  EXPECT_EQ(Reports("standby"), standby + 1);
  Replay("resume");
  EXPECT_TRUE(Eventually([&] { return Transactions() == 2; }));

  pb::QueryUsageRequest usage;
  usage.set_parent(kWorkspace);
  pb::QueryUsageResponse sums;
  EXPECT_EQ(Call(*usage_, &pb::UsageService::Stub::QueryUsage, usage, sums), "");
  pb::ListStatementsRequest list;
  list.set_parent(kWorkspace);
  pb::ListStatementsResponse statements;
  EXPECT_EQ(Call(*statements_, &pb::StatementService::Stub::ListStatements, list, statements), "");
  EXPECT_EQ(statements.statements_size(), 1);
  EXPECT_EQ(Reports("primary_after_failure"), failed) << "the standby answers reports again";
}

TEST_F(ReportsRpcTest, WhatTheStandbyDoesNotKnowYetIsReadOnThePrimary) {
  Begin();
  Replay("pause");
  pb::OpenWalletRequest open;
  open.set_name("workspaces/new/balance");
  pb::Balance balance;
  ASSERT_EQ(Call(*books_, &pb::LedgerService::Stub::OpenWallet, open, balance), "");
  pb::ListStatementsRequest list;
  list.set_parent("workspaces/new");
  pb::ListStatementsResponse statements;
  EXPECT_EQ(Call(*statements_, &pb::StatementService::Stub::ListStatements, list, statements), "");
  Replay("resume");
}

TEST_F(ReportsRpcTest, AStandbyThatIsTooFarBehindIsNotAsked) {
  options_.reports.max_lag_ms = 200;
  Begin();
  Replay("pause");
  ASSERT_EQ(Grant("g2", "3"), "");
  EXPECT_TRUE(Eventually([&] { return ledger_->report_database() == nullptr; }));
  EXPECT_EQ(Transactions(), 2);
  Replay("resume");
  EXPECT_TRUE(Eventually([&] { return ledger_->report_database() != nullptr; }));
}

TEST_F(ReportsRpcTest, AnIdleStandbyIsNotBehind) {
  options_.reports.max_lag_ms = 500;
  Begin();
  // For longer than the bound the standby has nothing to apply.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  EXPECT_TRUE(Eventually([&] { return std::chrono::steady_clock::now() > until; }));
  EXPECT_TRUE(Eventually([&] { return ledger_->report_database() != nullptr; }));
}

TEST_F(ReportsRpcTest, ALostStandbyIsNotNoticed) {
  Begin();
  standby_->Kill();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Transactions(), 1);
  EXPECT_TRUE(Eventually([&] { return ledger_->report_database() == nullptr; }));
  EXPECT_EQ(Transactions(), 1);
  ASSERT_TRUE(standby_->Run());
  EXPECT_TRUE(Eventually([&] { return ledger_->report_database() != nullptr; }));
}

TEST_F(ReportsRpcTest, IsForPostgres) {
  options_.sql.url = "sqlite::memory:";
  LedgerService ledger(options_, SystemClock::Get());
  EXPECT_FALSE(ledger.Start().ok());
  ledger.Stop();
}

}  // namespace
}  // namespace tollgate::billing
