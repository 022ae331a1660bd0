// Keeps the roll-ups that follow the entries (ADR 0025) close to the newest entry, off the ledger's
// commit path: those of a whole workspace, of its keys by time, and of its statements. The commit
// itself maintains the roll-ups by key, usage_quarter and usage_day.
#pragma once

#include <functional>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Adds at most limit entries after the workspace's cut and moves the cut, in one transaction, so
// that a crash changes neither. Safe while other processes do the same; of two concurrent calls one
// changes nothing. Returns true if there is more to do.
sql::SqlResult<bool> FoldEntries(sql::Connection& db, const std::string& workspace,
                                 int limit = 20'000);

// Repeats FoldEntries for all workspaces until nothing is left, or stop returns true.
sql::SqlResult<void> FoldLedger(
    sql::Connection& db, const std::function<bool()>& stop = [] { return false; });

}  // namespace tollgate::billing
