// Verifications requested over the admin API: one row each, so that every replica of billing knows
// which one runs, its progress and its result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/audit/log.h"
#include "common/base/id.h"
#include "common/sql/sql.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing {

// The actor of the nightly verifications.
inline constexpr std::string_view kNightlyActor = "tollgate-billing";

enum class VerificationState : uint8_t {
  kRunning = 1,
  kConsistent = 2,
  kViolated = 3,
  kCancelled = 4,
  kBrokenOff = 5,  // its process stopped or its database failed
};

VerificationState StateOf(const VerifyReport& report);

struct Verification {
  Id id;
  std::string actor;
  std::string request_id;  // request_id of this actor
  std::string workspace;   // empty: all workspaces
  VerificationState state = VerificationState::kRunning;
  int64_t created_us = 0, ended_us = 0;
  VerifyReport report;
};

struct Begun {
  // The verification with this request id, also if an earlier call started it. Empty: refused.
  std::optional<Verification> verification;
  bool fresh = false;           // the caller must run it
  bool request_reused = false;  // refused: the request id was used for another workspace
  // If both are false and verification is empty, another verification is running.
};
// Writes an audit entry. Ends a verification whose process has not reported for a minute, and the
// nightly one if another actor asks. may_run false: starts and ends none, since the caller's
// process still runs one.
sql::SqlResult<Begun> BeginVerification(sql::Database& database, const Verification& asked,
                                        const audit::Origin& by, bool may_run, int64_t now_us);
// Stores the progress. Returns false if the run must end, because an operator cancelled it or
// another process considered it dead.
sql::SqlResult<bool> ReportVerification(sql::Database& database, const Id& id,
                                        const VerifyReport& report, int64_t now_us);
// kBrokenOff becomes kCancelled if an operator cancelled the run. Also ends a run that another
// process considered dead.
sql::SqlResult<void> EndVerification(sql::Database& database, const Id& id, VerificationState state,
                                     const VerifyReport& report, int64_t now_us);
// Writes an audit entry if the verification is running.
sql::SqlResult<void> CancelVerification(sql::Database& database, const Id& id,
                                        const audit::Origin& by, int64_t now_us);
sql::SqlResult<std::optional<Verification>> FindVerification(sql::Database& database, const Id& id,
                                                             int64_t now_us);
// The newest of all workspaces by this actor. complete: only those that ended with a result.
sql::SqlResult<std::optional<Verification>> NewestVerification(sql::Database& database,
                                                               std::string_view actor,
                                                               bool complete, int64_t now_us);
// Newest first, at most limit, older than this id unless it is empty.
sql::SqlResult<std::vector<Verification>> ListVerifications(sql::Database& database,
                                                            const Id& before, int limit,
                                                            int64_t now_us);

}  // namespace tollgate::billing
