// Shared by the connections of SQLite and the sync of its log. Internal to common/sql.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

namespace tollgate::sql {

struct CloseDb {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using DbPtr = std::unique_ptr<sqlite3, CloseDb>;

// After a failed flush the content of the disk is unknown until a new process reads the files.
[[noreturn]] void AbortOnFailedFlush(const std::string& file, const char* reason);

}  // namespace tollgate::sql
