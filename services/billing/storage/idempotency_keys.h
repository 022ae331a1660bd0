// The table of idempotency keys and their answers (decisions 43 and 59). A row is written in the
// transaction that opens the hold of its request (store.cc); answers are added later.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Of one answer, as the gateway has sealed it.
inline constexpr size_t kMaxSealedBytes = 80 << 10;

// The rows that the operations may read, and the holds that these rows name. Called after the holds
// of the operations are loaded.
sql::SqlResult<void> LoadIdempotencyKeys(
    sql::Connection& db, std::span<const Operation> operations,
    const std::function<sql::SqlResult<void>(std::span<const sql::Param> keys)>& load_holds,
    State& state);
sql::SqlResult<void> SaveIdempotencyKeys(sql::Connection& db, const State& state,
                                         const Applied& applied);

// Keeps the answer of this request, unless the key has another request by now.
sql::SqlResult<void> StoreAnswer(sql::Database& database, const std::string& workspace,
                                 const std::string& digest, const Id& request_id,
                                 const std::string& sealed);
// Empty: there is none.
sql::SqlResult<std::string> ReadAnswer(sql::Database& database, const std::string& workspace,
                                       const std::string& digest);

// Deletes up to `limit` rows that are older, and returns how many.
sql::SqlResult<int64_t> DeleteIdempotencyKeys(sql::Database& database, int64_t before_us,
                                              int limit);

}  // namespace tollgate::billing
