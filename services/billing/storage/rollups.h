// Keeps the roll-ups that follow the entries (ADR 0025) near the newest entry, off the ledger's
// commit path. They are those of a workspace as a whole, of its keys by time, and of its
// statements; the ones by key, usage_quarter and usage_day, are kept by the commit itself.
#pragma once

#include <functional>
#include <string>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Adds at most limit of the entries behind the cut of the workspace, and moves the cut, in one
// transaction: a crash leaves both as they were. Safe beside other processes that do the same; of
// two at a time one changes nothing. True when there is more to do.
sql::SqlResult<bool> FoldEntries(sql::Connection& db, const std::string& workspace,
                                 int limit = 20'000);

// Until nothing is left in any workspace, or stop returns true.
sql::SqlResult<void> FoldLedger(
    sql::Connection& db, const std::function<bool()>& stop = [] { return false; });

}  // namespace tollgate::billing
