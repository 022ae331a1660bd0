// Audit entries of the ledger's commands (docs/adr/0040). On one server they are appended to the
// audit log in the transaction of the command. The log is one chain on one server: of a ledger that
// is distributed, the transaction writes them beside the wallet instead, into the outbox, from
// where they are moved into the log soon. A command is so committed on one server, in one phase,
// and neither waits for the server of the log nor is left in doubt by it.
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

// Within the transaction, last in it. The workspaces' wallets are locked by it or new.
sql::SqlResult<void> WriteAudit(sql::Connection& db, std::span<const AuditNote> notes);

// Moves entries from the outbox into the audit log, the first ones of each ledger shard, in a
// transaction per shard. Returns how many; not 0: there may be more. Fails when none could be
// moved, but not for what another mover or a piece that moves has locked. Several may do it at the
// same time. The ledger is distributed.
sql::SqlResult<int64_t> MoveAuditEntries(sql::Connection& db);

}  // namespace tollgate::billing
