// Compares the roll-ups that follow the entries (ADR 0025) with the entries and with the roll-ups
// by key, which were verified against the usage records.
#pragma once

#include <functional>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

// state: of the workspace after all its entries. on_page is called after each page of rows.
// Roll-ups that are still being built are not compared.
sql::SqlResult<void> CheckRollUps(sql::Connection& db, const WorkspaceState& state,
                                  Findings& findings, const std::function<void()>& on_page);

}  // namespace tollgate::billing
