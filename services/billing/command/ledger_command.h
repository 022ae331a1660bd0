// Commands of tollgate-billing that work on the ledger's database while the server may be running:
// verify, archive, archived, distribute, copy and statement.
#pragma once

#include <optional>
#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing {

// Returns the exit code, or nullopt if the arguments are for the server. 0: done; 1: refused,
// unreachable or violations found; 2: usage error. schemas: all schemas of billing's database.
std::optional<int> RunLedgerCommand(int argc, char** argv, std::span<const sql::Schema> schemas);

}  // namespace tollgate::billing
