// What the summary of a workspace shows of the ledger: today, the last seven days, and the newest
// requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// How many of the newest requests are looked at.
inline constexpr int kRecentRequests = 1000;
inline constexpr size_t kWeekModels = 50;

struct WorkspaceSummary {
  Balance balance;
  UsageChange today;
  int64_t week_charged_nano_usd = 0;
  // With requests in the last seven days, the most expensive first, at most kWeekModels.
  std::vector<std::string> week_models;
  // Of the newest at most kRecentRequests of today that have ended.
  int64_t recent_requests = 0;
  int64_t recent_start_us = 0;
  std::map<Outcome, int64_t> outcomes;
  // Microseconds; the smallest that half, or 95 of 100, of those with output do not exceed.
  std::optional<int64_t> first_token_p50_us, first_token_p95_us;
};

// day_start_us: when today began; sums begin at the quarter of an hour that has it.
sql::SqlResult<WorkspaceSummary> ReadSummary(sql::Database& database, const std::string& workspace,
                                             int64_t day_start_us, int64_t now_us);

}  // namespace tollgate::billing
