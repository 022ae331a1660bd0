// What entries of a workspace add to the roll-ups that follow them (ADR 0025). Whoever reads a
// roll-up adds what the entries behind its cut say, in the same snapshot. Internal to this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// How far the roll-ups of a workspace are.
struct RollUpCut {
  int64_t sequence = 0;  // of the newest entry that is in them
  int64_t base_us = 0;   // usage admitted before is in them, whatever entries say
};
// Nothing when the workspace has none yet.
sql::SqlResult<std::optional<RollUpCut>> ReadRollUpCut(sql::Connection& db,
                                                       const std::string& workspace);

// A request that ended, or that was corrected after its end.
struct RequestChange {
  bool ended = false;      // by one of the entries
  bool corrected = false;  // by one of them
  std::string key_id;
  std::string model;
  int64_t admitted_us = 0;
  UsageChange sums;              // as its usage record is in this snapshot
  int64_t charged_nano_usd = 0;  // by these entries; below 0: given back
};

struct StatementUsage {
  int64_t requests = 0;  // whose first charge is in the month
  int64_t amount_nano_usd = 0;
  bool operator==(const StatementUsage&) const = default;
};

struct RollUpChanges {
  int64_t last = 0;   // the newest of the entries
  bool more = false;  // the limit ended them
  bool gap = false;   // the entry behind the cut is not there: an archive has taken it
  std::vector<RequestChange> requests;
  // By month and kind: what was added to the posted credit.
  std::map<std::pair<int32_t, int64_t>, int64_t> movements;
  // By month of the entries, key and model.
  std::map<std::tuple<int32_t, std::string, std::string>, StatementUsage> usage;
  // Requests that were charged when they expired, and when that was.
  std::vector<std::pair<std::string, int64_t>> expired;
};

// Of at most limit entries behind this one. An operation is never divided.
sql::SqlResult<RollUpChanges> ReadRollUpChanges(sql::Connection& db, const std::string& workspace,
                                                int64_t after, int limit);

// More entries than these behind the cut cost a page too much; the roll-ups are being made then.
inline constexpr int kMostFreshEntries = 20'000;

// The changes behind the cut, in the snapshot of a page. Nothing when there are no roll-ups yet or
// too many entries behind them.
struct FreshChanges {
  RollUpCut cut;
  RollUpChanges changes;
};
sql::SqlResult<std::optional<FreshChanges>> ReadFreshChanges(sql::Connection& db,
                                                             const std::string& workspace);

}  // namespace tollgate::billing
