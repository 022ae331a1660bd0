// Checks the few single rows of a workspace: wallet, months, dead letters, and the start of its
// chain.
#pragma once

#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"
#include "services/billing/verify/verify_workspaces.h"

namespace tollgate::billing {

// State of the archive, or an initial state without entries. may_lack_digest: accepts a state that
// an earlier version archived.
sql::SqlResult<WorkspaceState> StartState(sql::Connection& db, const std::string& workspace,
                                          bool may_lack_digest, Findings& findings);
// Compares wallet and months with the state after the last entry.
sql::SqlResult<void> CheckWallet(sql::Connection& db, const WorkspaceState& state,
                                 const WorkspaceRows& rows, Findings& findings);
sql::SqlResult<void> CheckDeadLetters(sql::Connection& db, const std::string& workspace,
                                      Findings& findings);

}  // namespace tollgate::billing
