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
  // Starts of the intervals, ascending, and the end of the last one. At least two values.
  std::vector<int64_t> bounds_us;
  // Whether every whole UTC day lies within one interval, so that sums by day can be used.
  bool whole_days = false;
  bool by_model = false;
  bool by_key = false;
  // With by_key: returns only this many groups, those with the highest cost (ties by model and
  // key), and the sum of all others. 0: all groups. May return more groups than requested.
  size_t top = 0;
};
struct UsageSum {
  size_t interval = 0;  // it starts at bounds_us[interval]
  std::string model;    // empty unless by_model
  std::string key_id;   // empty unless by_key
  bool other = false;   // sum of all groups not listed; model and key_id are empty
  UsageChange sums;     // without names
};
// Exact at any moment: roll-ups that follow the entries are read together with the entries after
// their cut (ADR 0025). Unordered; omits intervals without requests.
sql::SqlResult<std::vector<UsageSum>> QueryUsage(sql::Database& database, const UsageQuery& query);

}  // namespace tollgate::billing
