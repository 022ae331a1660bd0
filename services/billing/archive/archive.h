// Moves closed months of the ledger to files. The chain stays provable: the verification of a
// workspace starts where the archive has cut it (docs/design/ledger.md 12).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::billing {

struct ArchiveOptions {
  int32_t before = 0;  // YYYYMM: all months before this one
  std::string folder;
  std::string actor;
  int64_t now_us = 0;
  // Called now and then. When it returns true, the run ends with an error; another run can
  // continue.
  std::function<bool()> stop = [] { return false; };
};

struct ArchivedMonth {
  int32_t month = 0;
  int64_t entries = 0;
  int64_t holds = 0;
  int64_t usage_records = 0;
};

// A month accepts corrections for some time, and ids of its last requests may still arrive.
inline constexpr int64_t kArchiveAfterUs = 8LL * 24 * 3600 * 1'000'000;

// Verifies each month, writes its files, records it and removes its rows (on PostgreSQL its
// partitions). Repeat an interrupted run with the same options. If two runs overlap, one fails and
// its files are removed.
sql::SqlResult<std::vector<ArchivedMonth>> ArchiveLedger(sql::Connection& db,
                                                         const ArchiveOptions& options);

// archive_remove.cc. Removes rows that are archived.
sql::SqlResult<void> RemoveArchived(sql::Connection& db, const ArchiveOptions& options);

inline sql::SqlError ArchiveStopped() {
  return {sql::ErrorKind::kOther, "the archive was stopped; run it again to continue"};
}

}  // namespace tollgate::billing
