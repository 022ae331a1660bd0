// Runs the ledger on SQL: one batch is one transaction. Both databases use the same code.
#pragma once

#include <functional>
#include <span>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Migrates the tables to this version.
sql::SqlResult<void> MigrateLedger(sql::Database& database);

// Loads the rows that the operations concern (locking their wallets in the order of their names),
// applies the operations and commits. A returned value is committed, and durable unless the
// database defers its syncs. After an error the outcome is unknown and no reply may be sent;
// running the same operations again is safe, since each is recognized by its id. check, if given,
// is called with the loaded rows before they are changed. kUnique: another replica wrote the same
// wallet or hold first, or a wallet disagrees with its entries.
sql::SqlResult<Applied> RunBatch(sql::Connection& connection, std::span<const Operation> operations,
                                 int64_t now_us, const Policy& policy,
                                 const std::function<sql::SqlResult<void>(State&)>& check = {});

}  // namespace tollgate::billing
