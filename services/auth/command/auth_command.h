// Commands of tollgate-auth on its database: verify-audit, which reads it while the server runs,
// and copy, for which the server must be stopped.
#pragma once

#include <optional>

namespace tollgate::auth {

// Returns the exit code, or nullopt if the arguments are the server's. 0: done and valid, 1: not
// valid, refused or failed, 2: usage error.
std::optional<int> RunAuthCommand(int argc, char** argv);

}  // namespace tollgate::auth
