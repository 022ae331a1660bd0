// Reads of the ledger's tables. Each runs in one snapshot and does not block the writer.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

struct UsageBucket {
  std::string model;  // empty in total
  int32_t day = 0;    // days since the epoch, UTC; 0 in total
  int64_t requests = 0;
  Usage usage;
  int64_t charged_nano_usd = 0;
};

struct UsageReport {
  UsageBucket total;
  std::vector<UsageBucket> buckets;  // ordered by day and model
  Balance balance;
};

// Usage of a key by requests admitted within [start, end). Omits requests without output, which are
// free.
sql::SqlResult<UsageReport> ReadUsage(sql::Database& database, const std::string& workspace,
                                      const std::string& key_id, int64_t start_us, int64_t end_us,
                                      int64_t now_us);
// Returns zero for an unknown workspace.
sql::SqlResult<Balance> ReadBalance(sql::Database& database, const std::string& workspace,
                                    int64_t now_us);
// Returns entries with a sequence below before, newest first; 0 starts with the newest.
sql::SqlResult<std::vector<Entry>> ReadEntries(sql::Database& database,
                                               const std::string& workspace, int limit,
                                               int64_t before);

struct ExpiredHold {
  Id id;
  std::string workspace;
  int64_t expires_us = 0;
};
// Open holds past their expiry, ordered by expiry and id, after this one.
sql::SqlResult<std::vector<ExpiredHold>> ReadExpiredHolds(sql::Database& database, int64_t now_us,
                                                          int limit, const ExpiredHold& after = {});
sql::SqlResult<int64_t> CountOpenHolds(sql::Database& database);
// Number of workspaces that a failed check has frozen.
sql::SqlResult<int64_t> CountFrozenByCheck(sql::Database& database);

}  // namespace tollgate::billing
