// Which workspaces a ledger has, for its verification.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Row counts of one workspace, read in one pass over each table, since these tables have no index
// by workspace.
struct Counts {
  int64_t holds = 0;
  int64_t months = 0;
};

// Every workspace that has a row in any table, so that one without a wallet is not missed.
// Tombstones alone need no wallet.
// misplaced: those with rows in a shard that is not theirs.
sql::SqlResult<void> CollectWorkspaces(sql::Connection& db, const std::string& workspace,
                                       std::map<std::string, Counts>& workspaces,
                                       std::set<std::string>& misplaced);

}  // namespace tollgate::billing
