// Reads rows of one workspace back from the files of the archive.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct ArchiveQuery {
  std::string folder;
  std::string workspace;
  int32_t month = 0;     // YYYYMM; 0: all archived months
  bool entries = false;  // ledger entries instead of usage records
  std::string id;        // only this request or, of entries, this command; empty: all
  std::string key_id;    // only usage records of this key; empty: all
  bool json = false;     // JSON lines instead of CSV
};

// Writes the rows line by line and returns how many there are. Fails before the first row of a
// month whose files are not those that the database knows.
sql::SqlResult<int64_t> QueryArchive(sql::Connection& db, const ArchiveQuery& query,
                                     const std::function<void(std::string_view line)>& write);

}  // namespace tollgate::billing
