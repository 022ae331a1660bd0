// The commands of tollgate-billing that work on the ledger's database beside the serving process:
// verify, archive, distribute and statement.
#pragma once

#include <optional>

namespace tollgate::billing {

// The exit code, or nothing when the arguments are those of the server. 0: done, 1: refused,
// unreachable or violations found, 2: usage error.
std::optional<int> RunLedgerCommand(int argc, char** argv);

}  // namespace tollgate::billing
