// The audit entries of other services: auth copies each one once, in order, into its own log, which
// people read (decision 56). An entry is taken only if it continues the chain of its service.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/auth/storage/audit_log.h"

namespace tollgate::auth {

struct AuditSource {
  std::string name;  // "billing"
  // Its entries after a number. Blocks.
  std::function<Result<audit::Page>(int64_t after, int limit)> read;
};

// The source as it is in its database.
AuditSource DatabaseSource(std::string name, sql::Connection& connection);

struct CopyStep {
  int64_t copied = 0;
  bool complete = false;  // nothing is left to copy
  // The source's log does not continue what was copied: from there on nothing is copied.
  std::string problem;
};
// One page. Several replicas may do it at the same time: an entry that another one was faster with
// is not copied again. Fails when the source or the database cannot be reached.
Result<CopyStep> CopyAudit(sql::Database& database, const AuditSource& source);

// What a comparison of a source with its copy found.
struct SourceFinding {
  std::string name;
  int64_t sequence = 0;  // of the source: up to here it holds, and the copy is the same
  std::string hash;
  int64_t waiting = 0;  // entries of the source that are not copied yet
  std::string problem;  // empty: none
};
// Recomputes the source's chain and compares each entry with its copy: every one is there, in
// order, with the same hash and content, and nothing that the source does not have. An entry that
// is not copied a minute after it was made is a problem.
sql::SqlResult<SourceFinding> VerifySource(sql::Connection& connection, const AuditSource& source,
                                           int64_t now_us);

// The log by itself (VerifyAuditLog), then each source. The first problem is that of the finding.
struct FullFinding {
  AuditFinding log;
  std::vector<SourceFinding> sources;
  // Services of which the log has entries, but which were not given to compare with: a problem if
  // others were.
  std::vector<std::string> not_compared;

  bool ok() const { return problem().empty(); }
  std::string problem() const;
};
sql::SqlResult<FullFinding> VerifyAudit(sql::Connection& connection,
                                        const AuditCheckpoints& checkpoints,
                                        const std::vector<AuditSource>& sources, int64_t now_us);

}  // namespace tollgate::auth
