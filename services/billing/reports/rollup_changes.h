// What entries of a workspace add to the roll-ups that follow them (ADR 0025). Readers of a roll-up
// add the changes of the entries after its cut, in the same snapshot. Internal to reports and
// statement.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"
#include "services/billing/storage/statement_closes.h"

namespace tollgate::billing {

// Up to which entry the roll-ups of a workspace are built.
struct RollUpCut {
  int64_t sequence = 0;  // newest entry that they contain
  int64_t base_us = 0;   // they contain all usage admitted before, whatever entries say
  // Newest entry whose receivable they contain: before `sequence` after a step of the previous
  // version.
  int64_t receivables = 0;
};
// Returns nullopt if the workspace has no roll-ups yet.
sql::SqlResult<std::optional<RollUpCut>> ReadRollUpCut(sql::Connection& db,
                                                       const std::string& workspace);

// A request that ended, or that was corrected after its end.
struct RequestChange {
  bool ended = false;      // one of the entries ended it
  bool corrected = false;  // one of them corrected it
  std::string key_id;
  std::string model;
  int64_t admitted_us = 0;
  UsageChange sums;              // its usage record in this snapshot
  int64_t charged_nano_usd = 0;  // charged by these entries; below 0: refunded
};

struct StatementUsage {
  int64_t requests = 0;  // whose first charge is in the month
  int64_t amount_nano_usd = 0;
  bool operator==(const StatementUsage&) const = default;
};

// Changes by the entries of one kind in a month.
struct Movement {
  int64_t posted_nano_usd = 0;      // of the posted credit
  int64_t receivable_nano_usd = 0;  // of what the workspace owes
  Movement& operator+=(const Movement& other) {
    posted_nano_usd += other.posted_nano_usd;
    receivable_nano_usd += other.receivable_nano_usd;
    return *this;
  }
  bool operator==(const Movement&) const = default;
};
using Movements = std::map<std::pair<int32_t, int64_t>, Movement>;  // by month, kind

struct RollUpChanges {
  int64_t last = 0;   // newest of the entries
  bool more = false;  // the limit was reached
  bool gap = false;   // the entry after the cut is missing: it is archived
  StatementCloses closes;
  std::vector<RequestChange> requests;
  Movements movements;
  // By month of the entry, key and model.
  std::map<std::tuple<int32_t, std::string, std::string>, StatementUsage> usage;
  // Requests that were charged when they expired, and the time of that.
  std::vector<std::pair<std::string, int64_t>> expired;
};

// Reads at most limit entries after this one. An operation is never split.
sql::SqlResult<RollUpChanges> ReadRollUpChanges(sql::Connection& db, const std::string& workspace,
                                                int64_t after, int limit);

// Reads the receivables that statement_month lacks: of entries up to the cut.
sql::SqlResult<Movements> ReadLateReceivables(sql::Connection& db, const std::string& workspace,
                                              const RollUpCut& cut);

// Maximum number of entries after the cut that a page may read. With more, the roll-ups are still
// being built.
inline constexpr int kMostFreshEntries = 20'000;

// Reads the changes after the cut in the snapshot of a page. Returns nullopt if there are no
// roll-ups yet or too many entries after them.
struct FreshChanges {
  RollUpCut cut;
  RollUpChanges changes;
};
sql::SqlResult<std::optional<FreshChanges>> ReadFreshChanges(sql::Connection& db,
                                                             const std::string& workspace);

}  // namespace tollgate::billing
