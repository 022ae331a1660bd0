// The table of idempotency keys and their answers (decisions 43 and 59). A row is written in the
// transaction that opens the hold of its request (store.cc); the answer is added later.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Maximum size of an answer as sealed by the gateway.
inline constexpr size_t kMaxSealedBytes = 80 << 10;

// Loads the rows that the operations may read, and the holds that these rows name. Must be called
// after the operations' holds are loaded.
sql::SqlResult<void> LoadIdempotencyKeys(
    sql::Connection& db, std::span<const Operation> operations,
    const std::function<sql::SqlResult<void>(std::span<const sql::Param> keys)>& load_holds,
    State& state);
sql::SqlResult<void> SaveIdempotencyKeys(sql::Connection& db, const State& state,
                                         const Applied& applied);

// Stores the answer of this request, unless the key now belongs to another request.
sql::SqlResult<void> StoreAnswer(sql::Database& database, const std::string& workspace,
                                 const std::string& digest, const Id& request_id,
                                 const std::string& sealed);
// Returns an empty string if there is no answer.
sql::SqlResult<std::string> ReadAnswer(sql::Database& database, const std::string& workspace,
                                       const std::string& digest);

// Deletes up to `limit` older rows. Returns how many.
sql::SqlResult<int64_t> DeleteIdempotencyKeys(sql::Database& database, int64_t before_us,
                                              int limit);

}  // namespace tollgate::billing
