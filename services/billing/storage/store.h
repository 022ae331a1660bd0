// Runs the ledger on SQL: one batch, one transaction. The same code for both databases.
#pragma once

#include <span>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Brings the tables up to date.
sql::SqlResult<void> MigrateLedger(sql::Database& database);

// Loads the rows that the operations name (locking their wallets, in the order of their names),
// applies them and commits. When it returns a value, everything in it is committed (and durable,
// where the database does not defer its syncs); on an error nothing may be told to anybody, and the
// same operations can be run again: each is recognized by its id.
sql::SqlResult<Applied> RunBatch(sql::Connection& connection, std::span<const Op> ops,
                                 int64_t now_us, const Policy& policy);

}  // namespace tollgate::billing
