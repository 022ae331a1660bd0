// Keeps the roll-ups that follow the entries (ADR 0025) close to the newest entry, off the ledger's
// commit path: those of a whole workspace, of its keys by time, and of its statements. The commit
// itself maintains the roll-ups by key, usage_quarter and usage_day.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::billing {

inline constexpr int kFoldEntries = 20'000;

// Adds at most limit entries after the workspace's cut and moves the cut, in one transaction, so
// that a crash changes neither. Safe while other processes do the same; of two concurrent calls one
// changes nothing. Returns true if there is more to do. Once it has all entries, it closes the
// months that have ended before now_us (statement_closes.h).
sql::SqlResult<bool> FoldEntries(sql::Connection& db, const std::string& workspace,
                                 int limit = kFoldEntries, int64_t now_us = 0);

// Repeats FoldEntries for all workspaces until nothing is left, or stop returns true.
sql::SqlResult<void> FoldLedger(
    sql::Connection& db, int64_t now_us = 0,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace tollgate::billing
