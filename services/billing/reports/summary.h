// Ledger data for the summary of a workspace: today, the last seven days, and the newest requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Number of newest requests that are read.
inline constexpr int kRecentRequests = 1000;
inline constexpr size_t kWeekModels = 50;

struct WorkspaceSummary {
  Balance balance;
  UsageChange today;
  int64_t week_charged_nano_usd = 0;
  // Models used in the last seven days, most expensive first, at most kWeekModels.
  std::vector<std::string> week_models;
  // Covers today's newest ended requests, at most kRecentRequests.
  int64_t recent_requests = 0;
  int64_t recent_start_us = 0;
  std::map<Outcome, int64_t> outcomes;
  // Percentiles over requests with output, in microseconds (nearest rank).
  std::optional<int64_t> first_token_p50_us, first_token_p95_us;
};

// day_start_us: start of today; sums start at the quarter of an hour that contains it.
sql::SqlResult<WorkspaceSummary> ReadSummary(sql::Database& database, const std::string& workspace,
                                             int64_t day_start_us, int64_t now_us);

}  // namespace tollgate::billing
