// Commands that work on the ledger's database itself: tollgate-billing has them, tollgate starts
// it.
#pragma once

#include <string>
#include <vector>

namespace tollgate::cli {

class Invocation;

// Replaces this process by tollgate-billing, found beside this binary or on the PATH. Returns only
// when that fails; the error has been reported.
void RunBillingBinary(Invocation& invocation, const std::string& command,
                      const std::vector<std::string>& arguments);

}  // namespace tollgate::cli
