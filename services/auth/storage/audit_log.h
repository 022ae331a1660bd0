// The audit log in the database: appended to in the transaction of each change and sign-in. The
// head of the chain is in auth_head, whose row every append locks.
#pragma once

#include "common/sql/sql.h"
#include "services/auth/domain/audit.h"

namespace tollgate::auth {

// Adds an event to the log within the transaction, which must be one for writing. The caller sets
// all but sequence and hash. Other appends wait until the transaction has ended.
sql::SqlResult<void> AppendAudit(sql::Connection& transaction, AuditRecord record);

}  // namespace tollgate::auth
