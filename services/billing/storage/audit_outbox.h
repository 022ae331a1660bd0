// Audit entries of the ledger's commands (docs/adr/0040). On one server they are appended to the
// audit log in the transaction of the command. The audit log is one chain on one server, so on a
// distributed ledger the transaction writes them to an outbox next to the wallet, and they are
// moved to the log soon after. So a command is committed on one server, in one phase: it does not
// wait for the server of the log, and cannot be left in doubt by it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

inline constexpr std::string_view kAuditOutboxTable = R"sql(
CREATE TABLE audit_outbox (
  shard {int} NOT NULL,
  workspace {text} NOT NULL,
  number {int} NOT NULL,
  at_us {int} NOT NULL,
  actor {text} NOT NULL,
  address {text} NOT NULL,
  action {text} NOT NULL,
  subject {text} NOT NULL,
  detail {text} NOT NULL,
  request_id {text} NOT NULL,
  PRIMARY KEY (shard, workspace, number)
) {keyed};
)sql";

// Must be the last statement of the transaction. The transaction has locked or created the wallets
// of the workspaces.
sql::SqlResult<void> WriteAudit(sql::Connection& db, std::span<const AuditNote> notes);

// Moves entries from the outbox to the audit log, the oldest of each ledger shard, in one
// transaction per shard. Returns how many; if not 0, there may be more. Fails if it could move
// none, but ignores shards that another mover or a moving piece has locked. Safe to run
// concurrently. Requires a distributed ledger.
sql::SqlResult<int64_t> MoveAuditEntries(sql::Connection& db);

}  // namespace tollgate::billing
