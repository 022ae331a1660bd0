// Compares the rows of leases with their entries.
#pragma once

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

// Called after the last entry of the workspace.
sql::SqlResult<void> CheckLeases(sql::Connection& db, const WorkspaceState& state,
                                 const Wallet& wallet, Findings& findings);

}  // namespace tollgate::billing
