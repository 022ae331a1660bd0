// Keys that came from one key by rotation share its limits, quota and idempotency keys.
#pragma once

#include <string>

#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/key_rows.h"

namespace tollgate::auth {

// Most keys of a lineage. Each request with a quota names the others to the ledger.
inline constexpr size_t kMaxLineage = 64;

// Adds the new key to the lineage of the old one, and tells the keys of it that still live. Keys
// that ended before this month leave it, but for the first, whose id names it.
sql::SqlResult<void> JoinLineage(AuthStore::Change& change, KeyRecord& old,
                                 const std::string& made);

}  // namespace tollgate::auth
