// Checks that the log of payments of a workspace ends where its head says.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"

namespace tollgate::billing {

// Whether the database has the tables of payments.
sql::SqlResult<bool> HasPayments(sql::Connection& db);

sql::SqlResult<void> CheckPaymentLog(sql::Connection& db, const std::string& workspace,
                                     Findings& findings);

}  // namespace tollgate::billing
