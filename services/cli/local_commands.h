// Commands that work on the ledger's database directly. tollgate-billing implements them; tollgate
// starts it.
#pragma once

#include <string>
#include <vector>

#include "services/cli/command.h"

namespace tollgate::cli {

// Replaces this process by tollgate-billing, found in this program's folder or on the PATH. Returns
// only on failure, after reporting the error.
void RunBillingBinary(Invocation& invocation, const std::string& command,
                      const std::vector<std::string>& arguments);

// The arguments with these keys that were given, as options: "--config", "file".
std::vector<std::string> ForBillingBinary(const Arguments& arguments,
                                          const std::vector<std::string>& keys);

}  // namespace tollgate::cli
