// Why a batch could not be written: which wallets are locked, and whether a wallet's books are
// whole.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// The workspaces of these operations whose wallets another transaction has locked at the moment.
// Does not wait. PostgreSQL only.
sql::SqlResult<std::vector<std::string>> LockedWorkspaces(sql::Connection& connection,
                                                          std::span<const Operation> operations);

// Compares wallets with their newest entries, in the transaction that has locked them: always
// before their first use by this process, and about once a minute. A database that was restored in
// part or changed by hand is found before anything is built on it. For one thread.
class WalletChecker {
 public:
  // Adds those that disagree to state.broken.
  sql::SqlResult<void> Check(sql::Connection& connection, State& state, int64_t now_us);

 private:
  std::unordered_map<std::string, int64_t> checked_us_;  // by workspace
};

// Compares a wallet with its newest entry. When they disagree, no batch of this workspace can be
// booked: the wallet is frozen with reason kFailedCheck. Returns what is wrong, empty when nothing
// is.
sql::SqlResult<std::string> FreezeBrokenWallet(sql::Connection& connection,
                                               const std::string& workspace);

}  // namespace tollgate::billing
