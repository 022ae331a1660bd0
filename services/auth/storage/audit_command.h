// The command verify-audit of tollgate-auth, which reads the database while the server runs.
#pragma once

#include <optional>

namespace tollgate::auth {

// Returns the exit code, or nullopt if the arguments are the server's. 0: the log is valid, 1: it
// is not or cannot be read, 2: usage error.
std::optional<int> RunAuditCommand(int argc, char** argv);

}  // namespace tollgate::auth
