// Changes of keys without a person: leaked and abused keys are disabled, use is counted, keys of
// closed workspaces are revoked. All are idempotent across replicas. See docs/design/keys.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "services/auth/admin/calls.h"
#include "services/auth/storage/key_rows.h"
#include "tollgate/admin/v1/keys.pb.h"

namespace tollgate::auth {

// The audit action of a key that enters this state, for example "key.disable".
std::string_view KeyAction(v1::KeyState state);

// The key with this SHA-256 digest, under any pepper.
sql::SqlResult<std::optional<KeyRecord>> KeyWithDigest(sql::Connection& connection,
                                                       const AuthStore& store,
                                                       std::string_view digest);

// Disables the active key with this digest, if there is one.
AdminResult<void> DisableLeaked(AuthStore& store, std::string_view digest,
                                const std::string& address, const std::string& reason);

struct PolicyOptions {
  // Thresholds as in KeyPolicySettings; 0: off.
  int64_t refusals_per_minute = 0;
  int64_t addresses_per_hour = 0;
};

// Stores the report and disables keys above a threshold. Fails with a catalogued error for a
// malformed report.
Result<v1::ReportKeyUseResponse> StoreUse(AuthStore& store, const PolicyOptions& policy,
                                          const v1::ReportKeyUseRequest& request);

// Sets requests_24h of these keys.
sql::SqlResult<void> AddRequests(sql::Connection& connection, int64_t now_us,
                                 const std::vector<admin::v1::Key*>& keys);

// Deletes counts that are no longer read.
Result<void> PruneUse(AuthStore& store);

}  // namespace tollgate::auth
