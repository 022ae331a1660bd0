// The commands of tollgate-billing that work on the ledger's database beside the serving process:
// verify, archive, distribute and statement.
#pragma once

#include <optional>
#include <span>

#include "common/sql/sql.h"

namespace tollgate::billing {

// The exit code, or nothing when the arguments are those of the server. 0: done, 1: refused,
// unreachable or violations found, 2: usage error.
// schemas: of billing's database.
std::optional<int> RunLedgerCommand(int argc, char** argv, std::span<const sql::Schema> schemas);

}  // namespace tollgate::billing
