// Finds out why a batch could not be written: which wallets are locked, and whether a wallet agrees
// with its entries.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Workspaces of these operations whose wallets another transaction has locked now. Does not wait.
// PostgreSQL only.
sql::SqlResult<std::vector<std::string>> LockedWorkspaces(sql::Connection& connection,
                                                          std::span<const Operation> operations);

// Compares wallets with their newest entries in the transaction that has locked them: always before
// their first use by this process, and about once a minute. Finds a database that was partly
// restored or changed by hand before further entries are posted. Not thread-safe.
class WalletChecker {
 public:
  // Adds wallets that disagree to state.broken.
  sql::SqlResult<void> Check(sql::Connection& connection, State& state, int64_t now_us);

 private:
  std::unordered_map<std::string, int64_t> checked_us_;  // by workspace
};

// Compares a wallet with its newest entry. If they disagree, no batch of this workspace can be
// booked, so the wallet is frozen with reason kFailedCheck. Returns what is wrong, or an empty
// string.
sql::SqlResult<std::string> FreezeBrokenWallet(sql::Connection& connection,
                                               const std::string& workspace);

}  // namespace tollgate::billing
