#include "services/auth/storage/audit_log.h"

namespace tollgate::auth {

using sql::SqlResult;

SqlResult<void> AppendAudit(sql::Connection& transaction, AuditRecord record) {
  std::string previous;
  auto locked =
      transaction.Query("SELECT audit_sequence, audit_hash FROM auth_head WHERE id = 1 FOR UPDATE",
                        {}, [&](const sql::Row& row) {
                          record.sequence = row.Int(0) + 1;
                          previous = row.Text(1);
                        });
  if (!locked) return locked;
  record.hash = AuditHash(previous, record);
  auto added = transaction.Execute(
      "INSERT INTO audit_event (sequence, at_us, actor, action, workspace_id, subject, detail, "
      "hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
      {record.sequence, record.at_us, record.actor, record.action, record.workspace_id,
       record.subject, record.detail, sql::Param::Blob(record.hash)});
  if (!added) return Fail{added.error()};
  auto head =
      transaction.Execute("UPDATE auth_head SET audit_sequence = $1, audit_hash = $2 WHERE id = 1",
                          {record.sequence, sql::Param::Blob(record.hash)});
  if (!head) return Fail{head.error()};
  return {};
}

}  // namespace tollgate::auth
