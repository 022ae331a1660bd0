// Digests of what the database keeps of archived months. An archive stores them in its states,
// since the rows that prove them are removed.
#pragma once

#include <cstdint>
#include <string>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

// SHA-256 over the roll-ups by day and key months before this time.
sql::SqlResult<std::string> DigestRollUps(sql::Connection& db, const std::string& workspace,
                                          int64_t cut_us);
// The one of earlier versions, which kept the quarters of archived months.
sql::SqlResult<std::string> DigestRollUpsWithQuarters(sql::Connection& db,
                                                      const std::string& workspace, int64_t cut_us);
// Over the statements of months before it.
sql::SqlResult<std::string> DigestStatements(sql::Connection& db, const std::string& workspace,
                                             int64_t cut_us);
// Over the commands that were posted or rejected before it.
sql::SqlResult<std::string> DigestCommands(sql::Connection& db, const std::string& workspace,
                                           int64_t cut_us);

// Compares roll-ups and commands with the digests of the archived state.
sql::SqlResult<void> CheckArchived(sql::Connection& db, const WorkspaceState& state,
                                   Findings& findings);

}  // namespace tollgate::billing
