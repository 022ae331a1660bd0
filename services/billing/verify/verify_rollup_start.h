// Where the check of the roll-ups begins: their cut, and what no entry proves any more.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/sql/sql.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

using RollUpPeriod = std::pair<int64_t, std::string>;  // period, and model or key

struct RollUpStart {
  int64_t cut = 0;                // newest entry that the roll-ups contain
  int64_t receivables = 0;        // newest entry whose receivable they contain
  int64_t base_us = 0;            // usage before is from the roll-ups by key
  int64_t sequence = 0;           // newest archived entry
  int64_t first_month = 0;        // statements of earlier months have no entries here
  StatementCloses closes;         // closed months
  std::set<std::string> charged;  // requests that were charged and may be corrected
  // Periods and models that are not compared.
  std::set<RollUpPeriod> unknown_quarters, unknown_days;
};

// Returns nullopt if there are no roll-ups, or none that can be compared. Also checks the marks of
// the roll-ups (rollup_cut, rollup_stale) and the statements of archived months.
sql::SqlResult<std::optional<RollUpStart>> ReadRollUpStart(sql::Connection& db,
                                                           const WorkspaceState& state,
                                                           Findings& findings);

}  // namespace tollgate::billing
