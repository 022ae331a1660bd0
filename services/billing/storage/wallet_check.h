// Why a batch could not be written: which wallets are locked, and whether a wallet's books are
// whole.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/operations.h"

namespace tollgate::billing {

// The workspaces of these operations whose wallets another transaction has locked at the moment.
// Does not wait. PostgreSQL only.
sql::SqlResult<std::vector<std::string>> LockedWorkspaces(sql::Connection& connection,
                                                          std::span<const Operation> operations);

// Compares a wallet with its newest entry. When they disagree, no batch of this workspace can be
// booked: the wallet is frozen with reason kFailedCheck. Returns what is wrong, empty when nothing
// is.
sql::SqlResult<std::string> FreezeBrokenWallet(sql::Connection& connection,
                                               const std::string& workspace);

}  // namespace tollgate::billing
