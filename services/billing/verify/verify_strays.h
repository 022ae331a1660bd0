// Reports rows that have no entry.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"

namespace tollgate::billing {

// table: hold, usage_record or command. Reads all their ids and all entries, so call it only if the
// number of rows is wrong.
sql::SqlResult<void> ReportStrays(sql::Connection& db, const std::string& workspace,
                                  const std::string& table, int64_t cut_us, Findings& findings);

}  // namespace tollgate::billing
