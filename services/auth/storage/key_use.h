// Counts of what keys are used for, as gateways report them. A row belongs to a period of Unix time
// and a source: the reporter, or the digest of an address.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "common/sql/sql.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

enum class UseKind : int64_t { kRequestsOfHour = 1, kRefusalsOfMinute = 2, kAddressesOfHour = 3 };

// Writes one use, also of an unknown key: it is pruned with the rest. Skips counts of periods in
// the future.
sql::SqlResult<void> WriteKeyUse(sql::Connection& connection, const std::string& reporter,
                                 const v1::KeyUse& use, int64_t now_us);
sql::SqlResult<int64_t> SumOfUse(sql::Connection& connection, const std::string& key_id,
                                 UseKind kind, int64_t period);
// Counts of requests of these keys within 24 hours; several for a key.
sql::SqlResult<void> ReadRequests(
    sql::Connection& connection, std::span<const sql::Param> key_ids, int64_t now_us,
    const std::function<void(std::string key_id, int64_t count)>& add);

// Calls of a workspace that gateways answered with an error, by error code, reason and quarter of
// an hour of Unix time, for the last 26 hours.
struct RefusalSum {
  int64_t quarter = 0;
  std::string code;
  std::string reason;
  int64_t count = 0;
};
sql::SqlResult<void> ReadRefusals(sql::Connection& connection, const std::string& workspace,
                                  const std::function<void(RefusalSum)>& add);

// Deletes counts that are no longer read.
sql::SqlResult<void> PruneKeyUse(sql::Connection& connection, int64_t now_us);

}  // namespace tollgate::auth
