#include "services/billing/storage/key_spend.h"

#include "common/base/clock.h"
#include "services/billing/domain/shard.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

// The first day of the month; there are no later days than today's.
int64_t FirstDay(int64_t now_us) { return UtcDay(UtcMonthStartUs(UtcMonth(now_us))); }

}  // namespace

SqlResult<std::vector<KeySpend>> ReadKeySpend(sql::Database& database, const std::string& workspace,
                                              const std::vector<std::string>& key_ids,
                                              int64_t now_us) {
  const int64_t first_day = FirstDay(now_us);
  const int32_t shard = LedgerShard(workspace);
  std::vector<KeySpend> spends;
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) -> SqlResult<void> {
    spends.clear();
    for (const std::string& key_id : key_ids) {
      int64_t spent = 0;
      auto read = db.Query(
          "SELECT CAST(coalesce(sum(charged), 0) AS BIGINT) FROM usage_day WHERE shard = $1"
          " AND workspace = $2 AND key_id = $3 AND period >= $4",
          {shard, workspace, key_id, first_day}, [&](const sql::Row& row) { spent = row.Int(0); });
      if (!read.ok()) return read;
      if (spent != 0) spends.push_back({key_id, spent});
    }
    return {};
  });
  if (!done.ok()) return Fail{done.error()};
  return spends;
}

SqlResult<std::vector<KeySpend>> ReadTopSpent(sql::Database& database, const std::string& workspace,
                                              int limit, int64_t now_us) {
  const int64_t first_day = FirstDay(now_us);
  std::vector<KeySpend> spends;
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    spends.clear();
    return db.Query(
        "SELECT key_id, CAST(sum(charged) AS BIGINT) AS spent FROM usage_day WHERE shard = $1"
        " AND workspace = $2 AND period >= $3 GROUP BY key_id"
        " HAVING sum(charged) > 0 ORDER BY spent DESC, key_id LIMIT $4",
        {LedgerShard(workspace), workspace, first_day, limit},
        [&](const sql::Row& row) { spends.push_back({row.Text(0), row.Int(1)}); });
  });
  if (!done.ok()) return Fail{done.error()};
  return spends;
}

}  // namespace tollgate::billing
