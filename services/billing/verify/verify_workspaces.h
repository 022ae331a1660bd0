// Iterates over the workspaces of a ledger, shard by shard, for its verification.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Settings for a snapshot that is read in pages, which may take long. Without them PostgreSQL would
// read and sort all remaining rows of a workspace for each page. No effect on SQLite.
sql::SqlResult<void> PrepareSnapshot(sql::Connection& db);

struct WorkspaceRows {
  std::vector<std::string> tables;  // tables with rows of it in this shard
  int64_t holds = 0;                // without tombstones, admitted at cut_us or later
  bool Has(std::string_view table) const;
};

// The next shard after this one in which any table has rows.
sql::SqlResult<std::optional<int64_t>> NextShard(sql::Connection& db, int64_t after);
// The workspaces of a shard. cut_us: cut of the newest archive, 0: none.
sql::SqlResult<std::map<std::string, WorkspaceRows>> WorkspacesOf(sql::Connection& db,
                                                                  int64_t shard, int64_t cut_us);

}  // namespace tollgate::billing
