// Moves the ledger to another database, for example from SQLite to PostgreSQL
// (docs/operations/databases.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/sql/copy.h"
#include "services/billing/verify/verify.h"

namespace CLI {
class App;
}

namespace tollgate::billing {

struct LedgerCopy {
  VerifyReport before;  // of the old database
  VerifyReport after;   // of the new one
  std::vector<sql::CopiedTable> tables;
  bool ok() const { return before.ok() && after.ok(); }
};

// Verifies the ledger of `from`, copies the whole database, and verifies the ledger of `to`. Copies
// nothing if the old ledger has violations. schemas: AllSchemas().
sql::SqlResult<LedgerCopy> CopyLedger(const std::string& from, const std::string& to,
                                      std::span<const sql::Schema> schemas, int64_t now_us);

// For people: the violations, or the number of rows per table and what was verified.
std::string ToText(const LedgerCopy& copy);

// Adds the command copy, which sets exit_code to 0 when the copy is valid, else to 1.
void AddCopyCommand(CLI::App& app, std::span<const sql::Schema> schemas, int& exit_code);

}  // namespace tollgate::billing
