#include "services/billing/reports/summary.h"

#include <algorithm>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/usage_query.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

constexpr int64_t kQuarter = 900LL * 1'000'000;
constexpr int64_t kDay = 96 * kQuarter;
// An id has the gateway's time, an admission the ledger's: the clocks may differ by this much.
constexpr int64_t kSummarySlackUs = 3600LL * 1'000'000;

// From the start of this time's quarter of an hour to the end of the current one, so that only
// roll-ups are read.
UsageQuery Since(const std::string& workspace, int64_t start_us, int64_t now_us) {
  UsageQuery query;
  query.workspace = workspace;
  query.bounds_us = {start_us / kQuarter * kQuarter, (now_us / kQuarter + 1) * kQuarter};
  query.whole_days = true;
  return query;
}

SqlResult<void> ReadToday(sql::Database& database, int64_t start_us, int64_t now_us,
                          WorkspaceSummary& summary) {
  TRY(auto sums, QueryUsage(database, Since(summary.balance.workspace, start_us, now_us)));
  for (const UsageSum& sum : sums) summary.today += sum.sums;
  return {};
}

SqlResult<void> ReadWeek(sql::Database& database, int64_t now_us, WorkspaceSummary& summary) {
  UsageQuery query =
      Since(summary.balance.workspace, std::max<int64_t>(now_us - 7 * kDay, 0), now_us);
  query.by_model = true;
  TRY(auto sums, QueryUsage(database, query));
  std::ranges::sort(sums, [](const UsageSum& a, const UsageSum& b) {
    return std::pair(b.sums.charged_nano_usd, a.model) <
           std::pair(a.sums.charged_nano_usd, b.model);
  });
  for (const UsageSum& sum : sums) {
    summary.week_charged_nano_usd += sum.sums.charged_nano_usd;
    if (summary.week_models.size() < kWeekModels) summary.week_models.push_back(sum.model);
  }
  return {};
}

int64_t Quantile(const std::vector<int64_t>& sorted, size_t percent) {
  const size_t rank = (sorted.size() * percent + 99) / 100;  // from 1
  return sorted[std::max<size_t>(rank, 1) - 1];
}

SqlResult<void> ReadRecent(sql::Database& database, int64_t start_us, WorkspaceSummary& summary) {
  // Filtered by id: its time orders the requests of a shard, and on PostgreSQL selects their
  // partition.
  const std::string first =
      Id::Make(std::max<int64_t>(start_us - kSummarySlackUs, 0) / 1000, 0, 0).ToBytes();
  const std::string& workspace = summary.balance.workspace;
  std::vector<int64_t> first_tokens;
  auto read = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    summary.outcomes.clear();
    summary.recent_requests = 0;
    first_tokens.clear();
    return db.Query(
        "SELECT outcome, first_token_us, admitted_us FROM usage_record WHERE shard = $1"
        " AND workspace = $2 AND id >= $3 AND admitted_us >= $4 ORDER BY id DESC LIMIT $5",
        {LedgerShard(workspace), workspace, sql::Param::Blob(first), start_us, kRecentRequests},
        [&](const sql::Row& row) {
          ++summary.recent_requests;
          ++summary.outcomes[static_cast<Outcome>(row.Int(0))];
          if (row.Int(1) > 0) first_tokens.push_back(row.Int(1));
          summary.recent_start_us = row.Int(2);
        });
  });
  if (!read.ok()) return Fail{read.error()};
  if (first_tokens.empty()) return {};
  std::ranges::sort(first_tokens);
  summary.first_token_p50_us = Quantile(first_tokens, 50);
  summary.first_token_p95_us = Quantile(first_tokens, 95);
  return {};
}

}  // namespace

SqlResult<WorkspaceSummary> ReadSummary(sql::Database& database, const std::string& workspace,
                                        int64_t day_start_us, int64_t now_us) {
  WorkspaceSummary summary;
  TRY(auto balance, ReadBalance(database, workspace, now_us));
  summary.balance = std::move(balance);
  summary.balance.workspace = workspace;
  const int64_t start_us = std::clamp<int64_t>(day_start_us, 0, now_us) / kQuarter * kQuarter;
  for (const auto& read :
       {ReadToday(database, start_us, now_us, summary), ReadWeek(database, now_us, summary),
        ReadRecent(database, start_us, summary)}) {
    if (!read.ok()) return Fail{read.error()};
  }
  return summary;
}

}  // namespace tollgate::billing
