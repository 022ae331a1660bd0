#include "services/billing/reports/key_spend.h"

#include <algorithm>
#include <map>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/reports/rollup_changes.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

// First day of the month, and of the next month.
int64_t FirstDay(int64_t now_us) { return UtcDay(UtcMonthStartUs(UtcMonth(now_us))); }
int64_t EndDay(int64_t now_us) {
  const int32_t month = UtcMonth(now_us);
  return UtcDay(UtcMonthStartUs(NextMonth(month)));
}

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
      TRY(db.Query(
          "SELECT CAST(coalesce(sum(charged), 0) AS BIGINT) FROM usage_day WHERE shard = $1"
          " AND workspace = $2 AND key_id = $3 AND period >= $4 AND period < $5",
          {shard, workspace, key_id, first_day, EndDay(now_us)},
          [&](const sql::Row& row) { spent = row.Int(0); }));
      if (spent != 0) spends.push_back({key_id, spent});
    }
    return {};
  });
  if (!done.ok()) return Fail{done.error()};
  return spends;
}

namespace {

// Used while the roll-ups are being built: reads all keys of the month.
SqlResult<void> ReadTopOfDays(sql::Connection& db, const std::string& workspace, int limit,
                              int64_t now_us, std::vector<KeySpend>& spends) {
  return db.Query(
      "SELECT key_id, CAST(sum(charged) AS BIGINT) AS spent FROM usage_day WHERE shard = $1"
      " AND workspace = $2 AND period >= $3 AND period < $4 GROUP BY key_id"
      " HAVING sum(charged) > 0 ORDER BY spent DESC, key_id LIMIT $5",
      {LedgerShard(workspace), workspace, FirstDay(now_us), EndDay(now_us), limit},
      [&](const sql::Row& row) { spends.push_back({row.Text(0), row.Int(1)}); });
}

// The roll-up has an index on the charged amount. Changes that are not in it yet are added; only
// their keys can have another rank.
SqlResult<void> ReadTopOfMonth(sql::Connection& db, const std::string& workspace, int limit,
                               int32_t month, const FreshChanges& fresh,
                               std::vector<KeySpend>& spends) {
  const int32_t shard = LedgerShard(workspace);
  std::map<std::string, int64_t> changed;
  for (const RequestChange& request : fresh.changes.requests) {
    if (request.admitted_us < fresh.cut.base_us || UtcMonth(request.admitted_us) != month) continue;
    changed[request.key_id] += request.charged_nano_usd;
  }
  // Includes ties with the last row; ties are ordered by key id.
  int64_t least = 0;
  const int64_t wanted = limit + static_cast<int64_t>(changed.size());
  TRY(db.Query(
      "SELECT charged FROM key_spend_month WHERE shard = $1 AND workspace = $2 AND period = $3"
      " ORDER BY charged DESC LIMIT 1 OFFSET $4",
      {shard, workspace, month, wanted}, [&](const sql::Row& row) { least = row.Int(0); }));
  TRY(
      db.Query("SELECT key_id, charged FROM key_spend_month WHERE shard = $1 AND workspace = $2"
               " AND period = $3 AND charged >= $4",
               {shard, workspace, month, std::max<int64_t>(least, 1)}, [&](const sql::Row& row) {
                 if (!changed.contains(row.Text(0))) spends.push_back({row.Text(0), row.Int(1)});
               }));
  for (auto& [key, charged] : changed) {
    TRY(db.Query(
        "SELECT charged FROM key_spend_month WHERE shard = $1 AND workspace = $2 AND period = $3"
        " AND key_id = $4",
        {shard, workspace, month, key}, [&](const sql::Row& row) { charged += row.Int(0); }));
    if (charged > 0) spends.push_back({key, charged});
  }
  std::ranges::sort(spends, [](const KeySpend& a, const KeySpend& b) {
    return std::pair(-a.spent_nano_usd, a.key_id) < std::pair(-b.spent_nano_usd, b.key_id);
  });
  if (spends.size() > static_cast<size_t>(limit)) spends.resize(limit);
  return {};
}

}  // namespace

SqlResult<std::vector<KeySpend>> ReadTopSpent(sql::Database& database, const std::string& workspace,
                                              int limit, int64_t now_us) {
  std::vector<KeySpend> spends;
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) -> SqlResult<void> {
    spends.clear();
    TRY(auto fresh, ReadFreshChanges(db, workspace));
    if (!fresh) return ReadTopOfDays(db, workspace, limit, now_us, spends);
    return ReadTopOfMonth(db, workspace, limit, UtcMonth(now_us), *fresh, spends);
  });
  if (!done.ok()) return Fail{done.error()};
  return spends;
}

}  // namespace tollgate::billing
