// The audit log in the database: appended to in the transaction of each change and sign-in, read in
// pages, verified as a whole. The head of the chain is in auth_head; every append locks its row.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "common/audit/log.h"
#include "common/auth_schema/auth_schema.h"
#include "common/sql/sql.h"

namespace tollgate::auth {

using AuditRecord = audit::Record;

using auth_schema::kAuditTables;

// Appends an event within a write transaction. The caller sets all fields but sequence, hash and
// format. Other appends wait until the transaction ends.
sql::SqlResult<void> AppendAudit(sql::Connection& transaction, AuditRecord record);

struct AuditQuery {
  std::string workspace;               // "": all events, also those without a workspace
  std::string actor, action, subject;  // "": any
  int64_t from_us = 0;
  int64_t before_us = INT64_MAX;
  // Only events after this one, in the order of the read; 0: from the start.
  int64_t after = 0;
  bool oldest_first = false;
  int limit = 0;
};
sql::SqlResult<void> ReadAuditLog(sql::Connection& connection, const AuditQuery& query,
                                  const std::function<void(AuditRecord)>& add);

// Result of a verification. The chain is valid from event 1 to `sequence`.
struct AuditFinding {
  int64_t sequence = 0;
  std::string hash;     // 32 bytes
  std::string problem;  // empty: none
  int64_t checkpoints = 0;
  // Services with copied entries in the log.
  std::set<std::string> sources;
};

// Name of the log's chain in checkpoints.
inline constexpr char kAuditChain[] = "audit";

// Reads the whole log in one snapshot and compares it with the stored head, and with the signed
// checkpoints in `file` unless that is empty. The key is the public key, as `openssl pkey -pubout`
// writes it, or the private one.
struct AuditCheckpoints {
  std::string file;
  std::string key_file;
  bool private_key = false;
};
sql::SqlResult<AuditFinding> VerifyAuditLog(sql::Connection& connection,
                                            const AuditCheckpoints& checkpoints = {});

}  // namespace tollgate::auth
