#include "services/billing/verify/verify_workspaces.h"

#include <algorithm>

#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::Row;
using sql::SqlResult;

// Keyed by shard and workspace, so that each workspace costs one index lookup.
constexpr const char* kByWorkspace[] = {
    "wallet",          "cap_month",       "key_month",         "entry",         "command",
    "usage_record",    "usage_day",       "usage_quarter",     "lease",         "archive_workspace",
    "rollup_cut",      "rollup_stale",    "workspace_quarter", "workspace_day", "expired_charge",
    "key_spend_month", "statement_month", "statement_usage",   "key_spend_day", "statement_close"};
// Keyed by shard and id.
constexpr const char* kById[] = {"hold", "dead_letter"};

}  // namespace

bool WorkspaceRows::Has(std::string_view table) const {
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

SqlResult<void> PrepareSnapshot(sql::Connection& db) {
  if (db.dialect() == sql::Dialect::kSqlite) return {};
  return db.ExecuteScript(
      "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;"
      "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
      "SET LOCAL enable_sort = off;"
      // Disabled paths make PostgreSQL estimate such high costs that it would JIT-compile every
      // small statement.
      "SET LOCAL jit = off");
}

SqlResult<std::optional<int64_t>> NextShard(sql::Connection& db, int64_t after) {
  std::optional<int64_t> next;
  const auto look = [&](const char* table) {
    return db.Query(
        "SELECT shard FROM " + std::string(table) + " WHERE shard > $1 ORDER BY shard LIMIT 1",
        {after}, [&](const Row& row) {
          if (!next || row.Int(0) < *next) next = row.Int(0);
        });
  };
  for (const char* table : kByWorkspace) {
    TRY(look(table));
  }
  for (const char* table : kById) {
    TRY(look(table));
  }
  return next;
}

SqlResult<std::map<std::string, WorkspaceRows>> WorkspacesOf(sql::Connection& db, int64_t shard,
                                                             int64_t cut_us) {
  std::map<std::string, WorkspaceRows> found;
  for (const char* table : kByWorkspace) {
    const std::string text = "SELECT workspace FROM " + std::string(table) +
                             " WHERE shard = $1 AND workspace > $2 ORDER BY workspace LIMIT 1";
    std::string name;
    for (bool more = true; more;) {
      more = false;
      const std::string after = name;
      auto read = db.Query(text, {shard, after}, [&](const Row& row) {
        name = row.Text(0);
        found[name].tables.push_back(table);
        more = true;
      });
      if (!read.ok()) return Fail{std::move(read).error()};
    }
  }
  auto read = db.Query(
      "SELECT workspace, count(*) FROM hold WHERE shard = $1 AND month <> 0 AND created_us >= $2"
      " GROUP BY workspace",
      {shard, cut_us}, [&](const Row& row) {
        WorkspaceRows& rows = found[row.Text(0)];
        rows.tables.push_back("hold");
        rows.holds = row.Int(1);
      });
  if (!read.ok()) return Fail{std::move(read).error()};
  read = db.Query("SELECT DISTINCT workspace FROM dead_letter WHERE shard = $1", {shard},
                  [&](const Row& row) { found[row.Text(0)].tables.push_back("dead_letter"); });
  if (!read.ok()) return Fail{std::move(read).error()};
  return found;
}

}  // namespace tollgate::billing
