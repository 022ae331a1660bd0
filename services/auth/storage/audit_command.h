// The command of tollgate-auth that works on the database beside the serving process: verify-audit.
#pragma once

#include <optional>

namespace tollgate::auth {

// The exit code, or nothing when the arguments are those of the server. 0: the log holds, 1: it
// does not, or cannot be read, 2: usage error.
std::optional<int> RunAuditCommand(int argc, char** argv);

}  // namespace tollgate::auth
