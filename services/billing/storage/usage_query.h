// Sums of a workspace's usage by time, model and key, from the roll-ups (decisions 48 and 53).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

struct UsageQuery {
  std::string workspace;
  std::optional<std::string> key_id, model;
  // Begins of the intervals, ascending, and the end of the last one. At least two.
  std::vector<int64_t> bounds_us;
  // Whether every whole UTC day lies within one interval, so that sums by day can be used.
  bool whole_days = false;
  bool by_model = false;
  bool by_key = false;
  // By key: only so many groups, those with the highest cost (ties by model and key), and what the
  // others have together. 0: all groups. More groups may come than asked for.
  size_t top = 0;
};
struct UsageSum {
  size_t interval = 0;  // bounds_us[interval] is its begin
  std::string model;    // empty unless by_model
  std::string key_id;   // empty unless by_key
  bool other = false;   // of all groups that are not named; both are empty
  UsageChange sums;     // its names are empty
};
// Exact at every moment: roll-ups that follow the entries are read with the entries behind them
// (ADR 0025). In no order; intervals without requests are left out.
sql::SqlResult<std::vector<UsageSum>> QueryUsage(sql::Database& database, const UsageQuery& query);

}  // namespace tollgate::billing
