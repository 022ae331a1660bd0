// Spend of keys in a UTC month, from the roll-ups by day.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct KeySpend {
  std::string key_id;
  int64_t spent_nano_usd = 0;
};
// Spend of these keys in the month of now_us. Omits keys that have spent nothing.
sql::SqlResult<std::vector<KeySpend>> ReadKeySpend(sql::Database& database,
                                                   const std::string& workspace,
                                                   const std::vector<std::string>& key_ids,
                                                   int64_t now_us);
// The keys of the workspace with the highest spend, highest first.
sql::SqlResult<std::vector<KeySpend>> ReadTopSpent(sql::Database& database,
                                                   const std::string& workspace, int limit,
                                                   int64_t now_us);

}  // namespace tollgate::billing
