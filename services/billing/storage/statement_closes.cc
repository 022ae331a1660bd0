#include "services/billing/storage/statement_closes.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"

namespace tollgate::billing {

using sql::SqlResult;

int32_t LastClosableMonth(int64_t now_us) {
  if (now_us < kCloseAfterUs) return 0;
  return UtcMonth(UtcMonthStartUs(UtcMonth(now_us - kCloseAfterUs)) - 1);
}

int32_t StatementCloses::FirstMonth(int64_t sequence) const {
  const auto after = std::partition_point(
      closes_.begin(), closes_.end(),
      [sequence](const StatementClose& close) { return close.sequence < sequence; });
  return after == closes_.begin() ? 0 : NextMonth(std::prev(after)->month);
}

SqlResult<StatementCloses> ReadStatementCloses(sql::Connection& db, const std::string& workspace) {
  std::vector<StatementClose> closes;
  TRY(db.Query(
      "SELECT month, sequence, at_us FROM statement_close WHERE shard = $1 AND workspace = $2"
      " ORDER BY month",
      {LedgerShard(workspace), workspace}, [&](const sql::Row& row) {
        closes.push_back({static_cast<int32_t>(row.Int(0)), row.Int(1), row.Int(2)});
      }));
  return StatementCloses(std::move(closes));
}

SqlResult<void> CloseStatements(sql::Connection& db, const std::string& workspace,
                                const StatementClose& close) {
  return WithoutValue(
      db.Execute("INSERT INTO statement_close (shard, workspace, month, sequence, at_us)"
                 " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (shard, workspace, month) DO NOTHING",
                 {LedgerShard(workspace), workspace, close.month, close.sequence, close.at_us}));
}

}  // namespace tollgate::billing
