// Verifies the ledger: recomputes every stored balance, hold, command, usage record and roll-up
// from the entries. Shares no code with the ledger except the hash of an entry, the encoding of
// details and the reading of rows. Runs beside a working ledger on a connection of its own.
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
  bool stopped = false;                 // before the end, because progress said so
  bool ok() const { return violations.empty() && !stopped; }
};
inline constexpr size_t kMaxViolations = 100;

struct VerifyOptions {
  std::string workspace;  // empty: all
  // Keeps how far the run has come, so that the next run with the same file goes on there; removed
  // at the end. Empty: none.
  std::string state_file;
  // Called about every page; false stops the run. May be null.
  std::function<bool(const VerifyReport&, const std::string& workspace)> progress;
  // Holds that stayed open long after their expiry are violations. Off for ledgers whose clock is
  // made up.
  bool overdue_holds = false;
  // Entries read at once.
  int page_entries = 5000;
};

// Reads in one snapshot per ledger shard and does not block the ledger. Memory does not grow with
// the number of requests.
sql::SqlResult<VerifyReport> VerifyLedger(sql::Connection& connection,
                                          const VerifyOptions& options);
// Every workspace, or the given one, on a connection of its own.
sql::SqlResult<VerifyReport> VerifyLedger(sql::Database& database,
                                          const std::string& workspace = "");

}  // namespace tollgate::billing
