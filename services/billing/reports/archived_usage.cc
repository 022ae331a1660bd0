#include "services/billing/reports/archived_usage.h"

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"

namespace tollgate::billing {

sql::SqlResult<int64_t> ReadArchivedUntil(sql::Connection& db, const std::string& workspace) {
  int64_t until_us = 0;
  TRY(db.Query("SELECT month FROM archive_workspace WHERE shard = $1 AND workspace = $2",
               {LedgerShard(workspace), workspace}, [&](const sql::Row& row) {
                 until_us = UtcMonthStartUs(NextMonth(static_cast<int32_t>(row.Int(0))));
               }));
  return until_us;
}

}  // namespace tollgate::billing
