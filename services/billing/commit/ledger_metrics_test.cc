#include "services/billing/commit/ledger_metrics.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/observability/metrics.h"

namespace tollgate::billing {
namespace {

std::string ValueOf(const std::string& kind, const std::string& result) {
  const std::string series =
      "tollgate_billing_operations_total{kind=\"" + kind + "\",result=\"" + result + "\"} ";
  std::istringstream lines(metrics::Render());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series)) return line.substr(series.size());
  }
  return "";
}

// Dashboards and alerts see each possible result before it occurs, and no impossible one.
TEST(LedgerMetricsTest, ExportsTheResultsThatCanHappen) {
  const LedgerMetrics metrics;
  EXPECT_NE(ValueOf("authorize", "cap"), "");
  EXPECT_NE(ValueOf("authorize", "idempotency_done"), "");
  EXPECT_NE(ValueOf("decide", "same_person"), "");
  EXPECT_NE(ValueOf("settle", "unavailable"), "");
  EXPECT_EQ(ValueOf("settle", "cap"), "");
  EXPECT_EQ(ValueOf("open_wallet", "no_credit"), "");
  EXPECT_EQ(ValueOf("heartbeat", "same_person"), "");
}

TEST(LedgerMetricsTest, CountsAlsoAResultThatWasNotForeseen) {
  LedgerMetrics metrics;
  Applied applied;
  Reply& reply = applied.replies.emplace_back();
  reply.denied_by = Deny::kSamePerson;
  const std::vector<Operation> operations = {OpenWallet{"ws"}};
  metrics.OnBatch(operations, applied, 1);
  EXPECT_EQ(ValueOf("open_wallet", "same_person"), "1");
}

}  // namespace
}  // namespace tollgate::billing
