// Walks over the workspaces of a ledger, shard by shard, for its verification.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Settings of a snapshot that is read in pages, which may take long. Without effect on SQLite.
// PostgreSQL would otherwise read and sort all that is left of a workspace for each page.
sql::SqlResult<void> PrepareSnapshot(sql::Connection& db);

struct WorkspaceRows {
  std::vector<std::string> tables;  // that have rows of it in this shard
  int64_t holds = 0;                // without tombstones, of cut_us or later
  bool Has(std::string_view table) const;
};

// The next shard that any table has rows of, after this one.
sql::SqlResult<std::optional<int64_t>> NextShard(sql::Connection& db, int64_t after);
// The workspaces of a shard. cut_us: of the newest archive, 0: none.
sql::SqlResult<std::map<std::string, WorkspaceRows>> WorkspacesOf(sql::Connection& db,
                                                                  int64_t shard, int64_t cut_us);

}  // namespace tollgate::billing
