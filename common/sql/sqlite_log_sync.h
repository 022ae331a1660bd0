// What the connections of SQLite and the sync of its log share. Internal to common/sql.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

namespace tollgate::sql {

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using DbPtr = std::unique_ptr<sqlite3, CloseDb>;

// After a failed flush it is unknown what is on disk: only a start from the files tells.
[[noreturn]] void AbortOnFailedFlush(const std::string& file, const char* reason);

}  // namespace tollgate::sql
