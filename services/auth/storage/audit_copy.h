// Copies the audit entries of other services into auth's log, which people read: each entry once,
// in order (decision 56). An entry is copied only if it continues the chain of its service.
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
  // Returns entries after a number. Blocks.
  std::function<Result<audit::Page>(int64_t after, int limit)> read;
};

// Reads the source from its database.
AuditSource DatabaseSource(std::string name, sql::Connection& connection);

struct CopyStep {
  int64_t copied = 0;
  bool complete = false;  // nothing is left to copy
  // Set if the source's log does not continue what was copied: nothing more is copied then.
  std::string problem;
};
// Copies one page. Several replicas may run it at the same time; an entry that another one has
// copied is not copied again. Fails if the source or the database cannot be reached.
Result<CopyStep> CopyAudit(sql::Database& database, const AuditSource& source);

// Result of comparing a source with its copy.
struct SourceFinding {
  std::string name;
  int64_t sequence = 0;  // last entry of the source that is valid and equals its copy
  std::string hash;
  int64_t waiting = 0;  // entries of the source that are not copied yet
  std::string problem;  // empty: none
};
// Recomputes the source's chain and compares each entry with its copy. Every entry must be there,
// in order, with the same hash and content, and the copy must have no others. An entry that is not
// copied within a minute is a problem.
sql::SqlResult<SourceFinding> VerifySource(sql::Connection& connection, const AuditSource& source,
                                           int64_t now_us);

// Verifies the log itself (VerifyAuditLog), then each source. Reports the first problem.
struct FullFinding {
  AuditFinding log;
  std::vector<SourceFinding> sources;
  // Services whose entries are in the log but that were not given to compare with. A problem only
  // if others were given.
  std::vector<std::string> not_compared;

  bool ok() const { return problem().empty(); }
  std::string problem() const;
};
sql::SqlResult<FullFinding> VerifyAudit(sql::Connection& connection,
                                        const AuditCheckpoints& checkpoints,
                                        const std::vector<AuditSource>& sources, int64_t now_us);

}  // namespace tollgate::auth
