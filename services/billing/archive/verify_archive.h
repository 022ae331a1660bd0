// Verifies the files of the archive: their checksums against the database, and the hash chains of
// their entries up to the heads from which the verification of the database starts.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing {

// Adds violations to the report. Fails if the database cannot be read.
sql::SqlResult<void> VerifyArchive(sql::Connection& db, const std::string& folder,
                                   VerifyReport& report);

}  // namespace tollgate::billing
