// What happens to keys without a person: leaked and abused keys are disabled, the use of keys is
// counted, the keys of workspaces that close are revoked. Each is idempotent, whichever replicas do
// it. See docs/design/keys.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "services/auth/admin/calls.h"
#include "services/auth/storage/key_rows.h"
#include "tollgate/admin/v1/keys.pb.h"

namespace tollgate::auth {

// The event of a key that gets this state: "key.disable".
std::string_view KeyAction(v1::KeyState state);

// The key with this SHA-256 digest, under any pepper.
sql::SqlResult<std::optional<KeyRecord>> KeyWithDigest(sql::Connection& connection,
                                                       const AuthStore& store,
                                                       std::string_view digest);

// Disables the active key with this digest; without one nothing happens.
AdminResult<void> DisableLeaked(AuthStore& store, std::string_view digest,
                                const std::string& address, const std::string& reason);

struct PolicyOptions {
  // As in KeyPolicySettings; 0: never.
  int64_t refusals_per_minute = 0;
  int64_t addresses_per_hour = 0;
};

// Stores the report, and disables keys that are above a threshold. Fails with a catalogued error
// for a report that is malformed.
Result<v1::ReportKeyUseResponse> StoreUse(AuthStore& store, const PolicyOptions& policy,
                                          const v1::ReportKeyUseRequest& request);

// Sets requests_24h of these keys.
sql::SqlResult<void> AddRequests(sql::Connection& connection, int64_t now_us,
                                 const std::vector<admin::v1::Key*>& keys);

// Calls that gateways answered with an error, of all keys of a workspace, by code and quarter of an
// hour of Unix time, of the last 26 hours.
struct RefusalSum {
  int64_t quarter = 0;
  std::string code;
  int64_t count = 0;
};
sql::SqlResult<void> ReadRefusals(sql::Connection& connection, const std::string& workspace,
                                  const std::function<void(RefusalSum)>& add);

// Forgets counts that nobody reads any more.
Result<void> PruneUse(AuthStore& store);

}  // namespace tollgate::auth
