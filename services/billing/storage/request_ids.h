// Remembers the request ids of calls that leave no row with their id, for seven days: a late
// repetition must not undo what came after, and the id of one call is no other call's.
#pragma once

#include <span>
#include <string_view>

#include "common/audit/log.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

inline constexpr std::string_view kRequestIdsComponent = "billing request ids";
std::span<const sql::Migration> RequestIdMigrations();
// Makes the table. Several parts of billing may call it, at the same time too.
sql::SqlResult<void> MigrateRequestIds(sql::Database& database);

enum class SeenRequest : uint8_t {
  kFresh,  // remembered now, if the transaction commits
  kSame,   // was made before with the same content
  kOther,  // was made before with another content: REQUEST_ID_REUSED
};
// Within a transaction for writing. Without a request id every call is fresh.
sql::SqlResult<SeenRequest> SeeRequest(sql::Connection& transaction, const audit::Origin& by,
                                       std::string_view content, int64_t now_us);

}  // namespace tollgate::billing
