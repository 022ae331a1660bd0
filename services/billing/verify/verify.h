// Verifies the ledger: recomputes every stored balance, hold, command, usage record and roll-up
// from the entries. Shares no code with the ledger except the hash of an entry, the encoding of
// details and the reading of rows. Runs next to a working ledger on its own connection.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct VerifyReport {
  int64_t workspaces = 0;
  int64_t entries = 0;
  int64_t holds = 0;
  int64_t usage_records = 0;
  int64_t commands = 0;
  std::vector<std::string> violations;  // at most kMaxViolations
  bool stopped = false;                 // progress ended the run early
  bool ok() const { return violations.empty() && !stopped; }
};
inline constexpr size_t kMaxViolations = 100;

// Called about once per page with the workspace; returning false stops the run. May be null.
using VerifyProgressFn = std::function<bool(const VerifyReport&, const std::string& workspace)>;

struct VerifyOptions {
  std::string workspace;  // empty: all workspaces
  // File that stores the progress, so that the next run with the same file continues there. Removed
  // at the end. Empty: none.
  std::string state_file;
  VerifyProgressFn progress;
  // Reports holds that stayed open long after their expiry. Off for ledgers with an artificial
  // clock.
  bool overdue_holds = false;
  // The archived months were recomputed and agree with the database (VerifyArchive): states of
  // archives of earlier versions, which have no digest, are accepted.
  bool archive_verified = false;
  // Number of entries per read.
  int page_entries = 5000;
};

// Reads in one snapshot per ledger shard and does not block the ledger. Memory use does not grow
// with the number of requests.
sql::SqlResult<VerifyReport> VerifyLedger(sql::Connection& connection,
                                          const VerifyOptions& options);
// Verifies every workspace, or the given one, on a separate connection.
sql::SqlResult<VerifyReport> VerifyLedger(sql::Database& database,
                                          const std::string& workspace = "");

}  // namespace tollgate::billing
