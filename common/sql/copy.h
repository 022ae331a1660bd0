// Copies a service's database into another one, for example from SQLite to PostgreSQL. The service
// must be stopped: what it writes to the old database later is not in the new one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::sql {

struct CopiedTable {
  std::string name;
  int64_t rows = 0;
};

struct CopyOptions {
  std::string from;
  std::string to;
  // All schemas of the service's database, in the order in which they can be applied.
  std::span<const Schema> schemas;
  // Runs after the schemas were applied to `to` and before the rows are copied; may be null.
  std::function<SqlResult<void>(Connection& from, Connection& to)> prepare;
  int page_rows = 2000;
};

// Applies the schemas to `to`, copies the rows of all tables in one transaction, reads them back
// and compares each row before it commits. Writers of `from` wait meanwhile on SQLite. kOther if it
// is refused: `from` lacks migrations, or `to` has rows other than those of new tables.
SqlResult<std::vector<CopiedTable>> CopyDatabase(const CopyOptions& options);

// A line per table that has rows.
std::string ToText(const std::vector<CopiedTable>& tables);

}  // namespace tollgate::sql
