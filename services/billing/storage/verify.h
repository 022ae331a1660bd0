// Verifies the ledger: recomputes every stored balance, hold and usage record from the entries.
// Shares no code with the ledger except the hash of an entry and the reading of rows.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct VerifyReport {
  int64_t workspaces = 0;
  int64_t entries = 0;
  int64_t holds = 0;
  int64_t usage_records = 0;
  std::vector<std::string> violations;  // at most kMaxViolations
  bool ok() const { return violations.empty(); }
};
inline constexpr size_t kMaxViolations = 100;

// Checks every workspace, or the given one. Reads one snapshot and does not block the ledger.
sql::SqlResult<VerifyReport> VerifyLedger(sql::Database& database,
                                          const std::string& workspace = "");

}  // namespace tollgate::billing
