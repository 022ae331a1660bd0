// What keys have spent in a UTC month, from the roll-ups by day.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct KeySpend {
  std::string key_id;
  int64_t spent_nano_usd = 0;
};
// Of these keys, in the month of now_us; those that have spent nothing are left out.
sql::SqlResult<std::vector<KeySpend>> ReadKeySpend(sql::Database& database,
                                                   const std::string& workspace,
                                                   const std::vector<std::string>& key_ids,
                                                   int64_t now_us);
// Of the keys of the workspace that have spent the most, the highest first.
sql::SqlResult<std::vector<KeySpend>> ReadTopSpent(sql::Database& database,
                                                   const std::string& workspace, int limit,
                                                   int64_t now_us);

}  // namespace tollgate::billing
