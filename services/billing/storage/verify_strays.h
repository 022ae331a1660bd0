// Names rows that no entry speaks of.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/storage/verify_findings.h"

namespace tollgate::billing {

// table: hold, usage_record or command. Only called when their number is wrong: reads all their ids
// and all entries.
sql::SqlResult<void> ReportStrays(sql::Connection& db, const std::string& workspace,
                                  const std::string& table, int64_t cut_us, Findings& findings);

}  // namespace tollgate::billing
