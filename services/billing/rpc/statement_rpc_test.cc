#include "common/base/clock.h"
#include "common/base/utc_text.h"
#include "services/billing/rpc/testing/admin_rpc_world.h"

namespace tollgate::billing {
namespace {

class StatementRpcTest : public AdminRpcTest {
 protected:
  std::string Download(const std::string& name, pb::StatementFormat format) {
    pb::DownloadStatementRequest request;
    request.set_name(name);
    request.set_format(format);
    return Call(*statements_, &pb::StatementService::Stub::DownloadStatement, request, body_);
  }
  // Returns "" or the error.
  std::string DateEntries(int64_t at_us) {
    auto database = sql::Database::Open({.url = "sqlite:" + file_});
    if (!database.ok()) return database.error().message;
    auto connection = (*database)->Borrow();
    if (!connection.ok()) return connection.error().message;
    auto dated = (*connection)->Execute("UPDATE entry SET at_us = $1", {at_us});
    return dated.ok() ? "" : dated.error().message;
  }
  std::string ThisMonth() const { return UtcMonthText(UtcMonth(ledger_->NowUs())); }

  google::api::HttpBody body_;
};

TEST_F(StatementRpcTest, IsPdfOrCsvWithTheLedgersAmounts) {
  const std::string name = "workspaces/ws/statements/" + ThisMonth();
  EXPECT_EQ(Download(name, pb::STATEMENT_FORMAT_CSV), "WALLET_NOT_FOUND");
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "12.000000001"), "");
  ASSERT_EQ(Download(name, pb::STATEMENT_FORMAT_CSV), "");
  EXPECT_EQ(body_.content_type(), "text/csv; charset=utf-8");
  EXPECT_NE(body_.data().find("12.000000001"), std::string::npos) << body_.data();
  for (const auto format : {pb::STATEMENT_FORMAT_UNSPECIFIED, pb::STATEMENT_FORMAT_PDF}) {
    ASSERT_EQ(Download(name, format), "");
    EXPECT_EQ(body_.content_type(), "application/pdf");
    EXPECT_EQ(body_.data().substr(0, 5), "%PDF-");
  }
  EXPECT_EQ(Download(name, static_cast<pb::StatementFormat>(9)), "INVALID_FIELD");
}

TEST_F(StatementRpcTest, WantsAMonthThatHasBegun) {
  ASSERT_EQ(OpenWallet(), "");
  for (const char* month : {"", "2026", "2026-13", "2026-00", "202611", "2026-1 ", "2999-01"}) {
    EXPECT_EQ(Download("workspaces/ws/statements/" + std::string(month), pb::STATEMENT_FORMAT_CSV),
              "INVALID_FIELD")
        << month;
  }
  EXPECT_EQ(Download("workspaces/ws/statements/2020-01", pb::STATEMENT_FORMAT_CSV), "");
}

TEST_F(StatementRpcTest, FieldsAreTheLedgersAmounts) {
  pb::GetStatementRequest request;
  request.set_name("workspaces/ws/statements/" + ThisMonth());
  pb::Statement statement;
  const auto get = [&] {
    return Call(*statements_, &pb::StatementService::Stub::GetStatement, request, statement);
  };
  EXPECT_EQ(get(), "WALLET_NOT_FOUND");
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "12.000000001"), "");
  ASSERT_EQ(Adjust("a", pb::ADJUSTMENT_KIND_DEBIT, "2"), "");
  ASSERT_EQ(get(), "");
  EXPECT_EQ(statement.name(), request.name());
  EXPECT_EQ(statement.opening_usd(), "0.00");
  EXPECT_EQ(statement.added_usd(), "12.000000001");
  EXPECT_EQ(statement.removed_usd(), "2.00");
  EXPECT_EQ(statement.used_usd(), "0.00");
  EXPECT_EQ(statement.closing_usd(), "10.000000001");
  EXPECT_EQ(statement.movements_size(), 2);
  EXPECT_EQ(statement.number(), "") << "the month is not closed";
  EXPECT_EQ(statement.opening_receivable_usd(), "0.00");
  EXPECT_EQ(statement.closing_receivable_usd(), "0.00");
  EXPECT_GT(statement.preliminary_time().seconds(), 0) << "the month has not ended";
  request.set_name("workspaces/ws/statements/2999-01");
  EXPECT_EQ(get(), "INVALID_FIELD");
}

TEST_F(StatementRpcTest, ListGoesBackMonthByMonthInPages) {
  pb::ListStatementsRequest request;
  request.set_parent(kWorkspace);
  pb::ListStatementsResponse list;
  const auto get = [&] {
    return Call(*statements_, &pb::StatementService::Stub::ListStatements, request, list);
  };
  EXPECT_EQ(get(), "WALLET_NOT_FOUND");
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "12"), "");
  ASSERT_EQ(get(), "");
  ASSERT_EQ(list.statements_size(), 1);
  EXPECT_EQ(list.statements(0).closing_usd(), "12.00");
  EXPECT_EQ(list.next_page_token(), "");

  // The same workspace with its credit dated two months back.
  const int32_t last = UtcMonth(UtcMonthStartUs(UtcMonth(ledger_->NowUs())) - 1);
  ASSERT_EQ(DateEntries(UtcMonthStartUs(last) - 1), "");
  request.set_page_size(2);
  ASSERT_EQ(get(), "");
  ASSERT_EQ(list.statements_size(), 2);
  EXPECT_EQ(list.statements(0).name(), "workspaces/ws/statements/" + ThisMonth());
  EXPECT_EQ(list.statements(0).opening_usd(), "12.00");
  EXPECT_EQ(list.statements(0).added_usd(), "0.00");
  EXPECT_TRUE(list.statements(0).has_preliminary_time());
  EXPECT_FALSE(list.statements(1).has_preliminary_time());
  request.set_page_token(list.next_page_token());
  ASSERT_EQ(get(), "");
  ASSERT_EQ(list.statements_size(), 1);
  EXPECT_EQ(list.statements(0).opening_usd(), "0.00");
  EXPECT_EQ(list.statements(0).added_usd(), "12.00");
  EXPECT_EQ(list.next_page_token(), "");
  request.set_page_token("x");
  EXPECT_EQ(get(), "INVALID_FIELD");
}

}  // namespace
}  // namespace tollgate::billing
