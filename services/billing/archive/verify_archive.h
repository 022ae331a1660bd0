// Verifies the files of the archive: their checksums against the database, and the states from
// which the verification of the database starts, which are computed again from the archived rows.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing {

// Adds violations to the report. Fails if the database cannot be read, or when progress returns
// false.
sql::SqlResult<void> VerifyArchive(sql::Connection& db, const std::string& folder,
                                   VerifyReport& report, const VerifyProgressFn& progress = {});

// Adds their digests to the states that an earlier version archived, after verifying the archive.
// Does nothing if every state has its digest.
sql::SqlResult<void> AddDigests(sql::Connection& db, const std::string& folder);

}  // namespace tollgate::billing
