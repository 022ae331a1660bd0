// `tollgate-billing verify` in a process of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing {

// words: the program and its arguments; it must print its result as JSON. The database is in the
// environment, since others can read the arguments of a process. progress is called several times a
// second; returning false ends the process, and the report says stopped. Returns what went wrong if
// there is no result.
BasicResult<VerifyReport, std::string> RunVerifyProcess(
    const std::vector<std::string>& words, const std::string& database_url,
    const std::function<bool(const VerifyReport&)>& progress);

// Environment variable with the URL of the database.
inline constexpr char kLedgerDatabaseVariable[] = "TOLLGATE_LEDGER_DATABASE";

}  // namespace tollgate::billing
