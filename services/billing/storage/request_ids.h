// Stores the request ids of calls that write no row with their id, for seven days: a late
// repetition must not undo later changes, and two calls must not use the same id.
#pragma once

#include <span>
#include <string_view>

#include "common/audit/log.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

inline constexpr std::string_view kRequestIdsComponent = "billing request ids";
std::span<const sql::Migration> RequestIdMigrations();
// Creates the table. Several parts of billing may call it, also concurrently.
sql::SqlResult<void> MigrateRequestIds(sql::Database& database);

enum class SeenRequest : uint8_t {
  kFresh,  // stored now, if the transaction commits
  kSame,   // used before with the same content
  kOther,  // used before with other content: REQUEST_ID_REUSED
};
// Requires a write transaction. A call without a request id is always kFresh.
sql::SqlResult<SeenRequest> SeeRequest(sql::Connection& transaction, const audit::Origin& by,
                                       std::string_view content, int64_t now_us);

}  // namespace tollgate::billing
