// Commands that work on the ledger's database directly. tollgate-billing implements them; tollgate
// starts it.
#pragma once

#include <string>
#include <vector>

namespace tollgate::cli {

class Invocation;

// Replaces this process by tollgate-billing, found in this program's folder or on the PATH. Returns
// only on failure, after reporting the error.
void RunBillingBinary(Invocation& invocation, const std::string& command,
                      const std::vector<std::string>& arguments);

}  // namespace tollgate::cli
