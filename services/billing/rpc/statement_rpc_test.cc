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

}  // namespace
}  // namespace tollgate::billing
