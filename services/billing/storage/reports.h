// What can be read from the ledger's own tables. Reads run beside the writer, each in one snapshot.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

struct UsageBucket {
  std::string model;  // empty in the total
  int32_t day = 0;    // days since the epoch, UTC; 0 in the total
  int64_t requests = 0;
  Usage usage;
  int64_t charged = 0;
};

struct UsageReport {
  UsageBucket total;
  std::vector<UsageBucket> buckets;  // per day and model, in this order
  Balance balance;
};

// What a key used in requests admitted within [start, end). Requests that cost nothing because
// nothing was generated are not in it.
sql::SqlResult<UsageReport> ReadUsage(sql::Database& database, const std::string& workspace,
                                      const std::string& key_id, int64_t start_us, int64_t end_us,
                                      int64_t now_us);
// Zero for a workspace that never had credit.
sql::SqlResult<Balance> ReadBalance(sql::Database& database, const std::string& workspace,
                                    int64_t now_us);
// Newest first; before 0 starts with the newest.
sql::SqlResult<std::vector<Entry>> ReadEntries(sql::Database& database,
                                               const std::string& workspace, int limit,
                                               int64_t before);

struct OpenHold {
  Id id;
  std::string workspace;
};
// Holds whose time is over, oldest first.
sql::SqlResult<std::vector<OpenHold>> ReadExpired(sql::Database& database, int64_t now_us,
                                                  int limit);
sql::SqlResult<int64_t> CountOpenHolds(sql::Database& database);

}  // namespace tollgate::billing
