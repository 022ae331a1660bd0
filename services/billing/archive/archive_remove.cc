// Removes archived rows. After an interruption the next run repeats the work: the archive tables
// say what may be removed.
#include <chrono>
#include <set>
#include <thread>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "services/billing/archive/archive.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_digests.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr int kRemovePage = 2000;
// Attempts to lock a table, about half a minute in total.
constexpr int kLockTries = 100;
constexpr std::chrono::milliseconds kLockPause(200);
// Condition for entries after the newest archived entry of their workspace.
constexpr std::string_view kNotArchived =
    " p LEFT JOIN archive_workspace a ON a.shard = p.shard AND a.workspace = p.workspace"
    " WHERE p.sequence > coalesce(a.sequence, 0)";

struct Archived {
  int64_t cut_us = 0;
  int32_t month = 0;
  std::set<std::string> keep;  // requests from before the cut that were closed after it
  struct Chain {
    int64_t shard = 0;
    std::string workspace;
    int64_t sequence = 0;
    std::string rollups;  // digest
  };
  std::vector<Chain> chains;
};

SqlResult<Archived> ReadArchived(Connection& db) {
  Archived archived;
  auto read = db.Query("SELECT max(month), max(cut_us) FROM archive", {}, [&](const Row& row) {
    archived.month = static_cast<int32_t>(row.Int(0));
    archived.cut_us = row.Int(1);
  });
  if (!read.ok()) return Fail{std::move(read).error()};
  bool damaged = false;
  read = db.Query(
      "SELECT shard, workspace, sequence, state FROM archive_workspace", {}, [&](const Row& row) {
        const auto state = DecodeState(row.Bytes(3));
        damaged |= !state.has_value();
        if (!state) return;
        archived.chains.push_back({row.Int(0), row.Text(1), row.Int(2), state->archived_rollups});
        for (const auto& [id, hold] : state->holds) archived.keep.insert(id);
      });
  if (!read.ok()) return Fail{std::move(read).error()};
  // Holds admitted before the cut by the ledger's time, but whose first entry is after it: it is
  // dated later, or follows an entry that is (docs/design/ledger.md 7).
  read = db.Query(
      "SELECT h.id FROM entry e JOIN hold h ON h.shard = e.shard AND h.id = e.request"
      " LEFT JOIN archive_workspace a ON a.shard = e.shard AND a.workspace = e.workspace"
      " WHERE e.kind = $1 AND h.created_us < $2 AND e.sequence > coalesce(a.sequence, 0)",
      {static_cast<int>(EntryKind::kHold), archived.cut_us},
      [&](const Row& row) { archived.keep.insert(row.Text(0)); });
  if (!read.ok()) return Fail{std::move(read).error()};
  if (damaged) {
    return Fail{sql::SqlError{sql::ErrorKind::kOther, "archive_workspace is damaged"}};
  }
  return archived;
}

// Runs the statements in a separate transaction.
template <typename Body>
SqlResult<void> InTransaction(Connection& db, Body body) {
  TRY(auto tx, sql::Transaction::Begin(db));
  TRY(body());
  return tx.Commit();
}

// Parses "hold_202511" to 202511; 0: not a month.
int32_t MonthOf(const std::string& partition) {
  const std::string digits = partition.substr(partition.rfind('_') + 1);
  if (digits.size() != 6 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  return std::stoi(digits);
}

// Replaces the partition by archive_rows. Waits only briefly for the lock of the whole table, many
// times: statements that queue behind a waiting lock wait as well, and a batch of the ledger gives
// up after 300 ms. DETACH … CONCURRENTLY is not possible because of the default partition.
SqlResult<void> Replace(Connection& db, const std::string& table, const std::string& partition) {
  for (int attempt = 1;; ++attempt) {
    auto done =
        db.ExecuteScript("SAVEPOINT unlocked; SET LOCAL lock_timeout = 100; ALTER TABLE " + table +
                         " DETACH PARTITION " + partition + "; DROP TABLE " + partition +
                         "; INSERT INTO " + table + " SELECT * FROM archive_rows");
    if (done.ok() || done.error().kind != sql::ErrorKind::kLocked || attempt == kLockTries) {
      return done;
    }
    TRY(db.ExecuteScript("ROLLBACK TO unlocked"));
    std::this_thread::sleep_for(kLockPause);
  }
}

// PostgreSQL. Rows of the partition that must be kept move to the default partition.
SqlResult<void> DropPartitions(Connection& db, const Archived& archived, const std::string& table,
                               const std::string& time, const ArchiveOptions& options) {
  std::vector<std::string> partitions;
  auto read = db.Query(
      "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
      " WHERE i.inhparent = to_regclass($1)",
      {table}, [&](const Row& row) {
        // The serving process would create the partition of the last month again (partitions.cc).
        const int32_t month = MonthOf(row.Text(0));
        const int32_t now = UtcMonth(options.now_us);
        const int32_t last = now % 100 == 1 ? now - 89 : now - 1;
        if (month > 0 && month <= archived.month && month < last) partitions.push_back(row.Text(0));
      });
  if (!read.ok()) return read;
  for (const std::string& partition : partitions) {
    if (options.stop()) return Fail{ArchiveStopped()};
    auto done = InTransaction(db, [&]() -> SqlResult<void> {
      TRY(
          db.ExecuteScript("SET LOCAL statement_timeout = 0;"
                           "CREATE TEMP TABLE archive_keep (id BYTEA PRIMARY KEY) ON COMMIT DROP"));
      // Serializes concurrent runs.
      bool there = false;
      auto turn = db.Query("SELECT month FROM archive ORDER BY month DESC LIMIT 1 FOR UPDATE", {},
                           [](const Row&) {});
      if (turn.ok()) {
        turn = db.Query("SELECT 1 WHERE to_regclass($1) IS NOT NULL", {partition},
                        [&](const Row&) { there = true; });
      }
      if (!turn.ok() || !there) return turn;
      std::vector<Param> cells;
      for (const std::string& id : archived.keep) cells.push_back(Param::Blob(id));
      if (!cells.empty()) {
        TRY(db.ExecuteRows("INSERT INTO archive_keep (id) VALUES", 1, cells));
      }
      const std::string rest = table == "entry"
                                   ? std::string(kNotArchived)
                                   : " p WHERE " + time + " >= " + std::to_string(archived.cut_us) +
                                         " OR id IN (SELECT id FROM archive_keep)";
      // Rows of a month that may be archived no longer change, so they are copied before the lock.
      auto copied = db.ExecuteScript(
          "CREATE TEMP TABLE archive_rows ON COMMIT DROP AS SELECT p.*"
          " FROM " +
          partition + rest);
      return copied.ok() ? Replace(db, table, partition) : copied;
    });
    if (!done.ok()) return done;
  }
  return {};
}

SqlResult<void> RemoveEntries(Connection& db, const Archived& archived,
                              const ArchiveOptions& options) {
  for (const Archived::Chain& chain : archived.chains) {
    for (bool more = true; more;) {
      if (options.stop()) return Fail{ArchiveStopped()};
      int64_t first = 0;
      TRY(db.Query(
          "SELECT sequence FROM entry WHERE shard = $1 AND workspace = $2 AND sequence <= $3"
          " ORDER BY sequence LIMIT 1",
          {chain.shard, chain.workspace, chain.sequence},
          [&](const Row& row) { first = row.Int(0); }));
      more = first > 0;
      if (!more) break;
      const int64_t last = std::min(first + kRemovePage, chain.sequence);
      TRY(db.Execute("DELETE FROM entry WHERE shard = $1 AND workspace = $2 AND sequence <= $3",
                     {chain.shard, chain.workspace, last}));
    }
  }
  return {};
}

// Usage of archived months is kept by day. Archives of earlier versions have digests of the
// quarters, which stay until the next month is archived.
SqlResult<void> RemoveQuarters(Connection& db, const Archived& archived,
                               const ArchiveOptions& options) {
  const int64_t end = archived.cut_us / kQuarterUs;
  for (const Archived::Chain& chain : archived.chains) {
    bool any = false;
    TRY(
        db.Query("SELECT 1 FROM workspace_quarter WHERE shard = $1 AND workspace = $2"
                 " AND period < $3 LIMIT 1",
                 {chain.shard, chain.workspace, end}, [&](const Row&) { any = true; }));
    if (!any) continue;
    TRY(auto digest, DigestRollUps(db, chain.workspace, archived.cut_us));
    if (digest != chain.rollups) continue;
    std::vector<std::pair<std::string, std::string>> used;  // keys and models
    TRY(db.Query("SELECT DISTINCT key_id, model FROM usage_day WHERE shard = $1 AND workspace = $2",
                 {chain.shard, chain.workspace},
                 [&](const Row& row) { used.emplace_back(row.Text(0), row.Text(1)); }));
    for (const auto& [key, model] : used) {
      if (options.stop()) return Fail{ArchiveStopped()};
      TRY(
          db.Execute("DELETE FROM usage_quarter WHERE shard = $1 AND workspace = $2"
                     " AND key_id = $3 AND model = $4 AND period < $5",
                     {chain.shard, chain.workspace, key, model, end}));
    }
    // The last ones, since they tell whether all were removed.
    TRY(
        db.Execute("DELETE FROM workspace_quarter WHERE shard = $1 AND workspace = $2"
                   " AND period < $3",
                   {chain.shard, chain.workspace, end}));
  }
  return {};
}

SqlResult<void> RemoveRequests(Connection& db, const Archived& archived, const std::string& table,
                               const std::string& time, const ArchiveOptions& options) {
  int64_t shard = -1;
  std::string id;
  for (int seen = kRemovePage; seen == kRemovePage;) {
    if (options.stop()) return Fail{ArchiveStopped()};
    seen = 0;
    std::vector<std::pair<int64_t, std::string>> gone;
    const std::string after = id;
    auto read = db.Query("SELECT shard, id, " + time + " FROM " + table +
                             " WHERE (shard, id) > ($1, $2) ORDER BY shard, id LIMIT " +
                             std::to_string(kRemovePage),
                         {shard, Param::Blob(after)}, [&](const Row& row) {
                           ++seen;
                           shard = row.Int(0);
                           id = row.Text(1);
                           if (row.Int(2) < archived.cut_us && !archived.keep.contains(id)) {
                             gone.emplace_back(shard, id);
                           }
                         });
    if (!read.ok()) return read;
    if (gone.empty()) continue;
    auto done = InTransaction(db, [&]() -> SqlResult<void> {
      for (const auto& [at, request] : gone) {
        TRY(db.Execute("DELETE FROM " + table + " WHERE shard = $1 AND id = $2",
                       {at, Param::Blob(request)}));
      }
      return {};
    });
    if (!done.ok()) return done;
  }
  return {};
}

}  // namespace

SqlResult<void> RemoveArchived(Connection& db, const ArchiveOptions& options) {
  TRY(auto archived, ReadArchived(db));
  if (db.dialect() == sql::Dialect::kPostgres) {
    const std::pair<const char*, const char*> tables[] = {
        {"entry", "at_us"}, {"hold", "created_us"}, {"usage_record", "admitted_us"}};
    for (const auto& [table, time] : tables) {
      TRY(DropPartitions(db, archived, table, time, options));
    }
  }
  // Without this PostgreSQL would read and sort all remaining rows for each page.
  if (db.dialect() == sql::Dialect::kPostgres) {
    TRY(db.ExecuteScript(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;"
        "SET jit = off"));
  }
  TRY(RemoveEntries(db, archived, options));
  TRY(RemoveQuarters(db, archived, options));
  TRY(RemoveRequests(db, archived, "hold", "created_us", options));
  return RemoveRequests(db, archived, "usage_record", "admitted_us", options);
}

}  // namespace tollgate::billing
