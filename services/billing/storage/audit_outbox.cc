#include "services/billing/storage/audit_outbox.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/audit/log.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/distribute.h"
#include "services/billing/storage/row_texts.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kOutboxColumns =
    "shard, workspace, number, at_us, actor, address, action, subject, detail, request_id";
constexpr int kOutboxColumnCount = 10;
// Maximum number of entries per transaction, which blocks other appends to the log.
constexpr int kMoved = 64;

// Whether the outbox is a distributed table. After an upgrade it is an ordinary table of the
// coordinator until the ledger is distributed again, and would not be committed together with the
// wallet.
SqlResult<bool> HasOutbox(Connection& db) {
  if (!db.distributed()) return false;
  bool has = false;
  TRY(db.Query(
      "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = to_regclass('audit_outbox')", {},
      [&](const Row& row) { has = row.Int(0) > 0; }));
  return has;
}

SqlResult<void> AppendToLog(Connection& db, std::span<const AuditNote> notes) {
  std::vector<audit::Record> records;
  for (const AuditNote& note : notes) {
    records.push_back(audit::RecordOf({note.actor, note.address, note.call_id}, note.at_us,
                                      note.action, note.workspace, note.subject, note.detail));
  }
  return audit::Append(db, audit::kEntries, records);
}

// The lock of the wallet keeps other transactions from using the same numbers.
SqlResult<int64_t> LastNumber(Connection& db, const std::string& workspace) {
  int64_t last = 0;
  TRY(db.Query(
      "SELECT CAST(coalesce(max(number), 0) AS BIGINT) FROM audit_outbox WHERE shard = $1 AND"
      " workspace = $2",
      {LedgerShard(workspace), workspace}, [&](const Row& row) { last = row.Int(0); }));
  return last;
}

SqlResult<void> WriteOutbox(Connection& db, std::span<const AuditNote> notes) {
  static const std::string kHead = Insert(kOutboxColumns, "audit_outbox");
  std::map<std::string_view, int64_t> last;
  std::vector<Param> cells;
  for (const AuditNote& note : notes) {
    auto [number, first] = last.try_emplace(note.workspace, 0);
    if (first) {
      TRY(auto read, LastNumber(db, note.workspace));
      number->second = read;
    }
    cells.insert(cells.end(),
                 {LedgerShard(note.workspace), note.workspace, ++number->second, note.at_us,
                  note.actor, note.address, note.action, note.subject, note.detail, note.call_id});
  }
  TRY(db.ExecuteRows(kHead, kOutboxColumnCount, cells));
  return {};
}

struct Waiting {
  int64_t number = 0;
  AuditNote note;
  int64_t since_us = 0;  // the latest time of the workspace up to this entry
};

// Oldest first, the entries of a workspace in order. Their times may decrease, because a batch is
// dated before it waits for the wallet.
SqlResult<std::vector<Waiting>> LockWaiting(Connection& db, int32_t shard) {
  static const std::string kSelect = Select(kOutboxColumns, "audit_outbox") +
                                     " shard = $1 ORDER BY workspace, number LIMIT $2 FOR UPDATE";
  std::vector<Waiting> waiting;
  TRY(db.Query(kSelect, {shard, kMoved}, [&](const Row& row) {
    waiting.push_back({row.Int(2),
                       {.at_us = row.Int(3),
                        .actor = row.Text(4),
                        .address = row.Text(5),
                        .action = row.Text(6),
                        .workspace = row.Text(1),
                        .subject = row.Text(7),
                        .detail = row.Text(8),
                        .call_id = row.Text(9)}});
  }));
  int64_t since_us = 0;
  for (size_t i = 0; i < waiting.size(); ++i) {
    const bool follows = i > 0 && waiting[i - 1].note.workspace == waiting[i].note.workspace;
    since_us = std::max(follows ? since_us : 0, waiting[i].note.at_us);
    waiting[i].since_us = since_us;
  }
  std::ranges::sort(waiting, {}, [](const Waiting& one) {
    return std::tuple(one.since_us, std::string_view(one.note.workspace), one.number);
  });
  return waiting;
}

// Moves the first entries of the shard.
SqlResult<int64_t> MoveShard(Connection& db, int32_t shard) {
  TRY(auto tx, sql::Transaction::Begin(db));
  TRY(KeepInPlace(db, shard));
  TRY(auto waiting, LockWaiting(db, shard));
  if (waiting.empty()) return 0;
  std::map<std::string_view, int64_t> last;
  std::vector<AuditNote> notes;
  for (const Waiting& one : waiting) {
    int64_t& number = last[one.note.workspace];
    number = std::max(number, one.number);
    notes.push_back(one.note);
  }
  int64_t deleted = 0;
  for (const auto& [workspace, number] : last) {
    TRY(auto done,
        db.Execute("DELETE FROM audit_outbox WHERE shard = $1 AND workspace = $2 AND number <= $3",
                   {shard, workspace, number}));
    deleted += done;
  }
  if (deleted != static_cast<int64_t>(notes.size())) {
    return Fail{sql::SqlError{sql::ErrorKind::kRetry, "locked audit entries are gone"}};
  }
  TRY(AppendToLog(db, notes));
  TRY(tx.Commit());
  return deleted;
}

}  // namespace

SqlResult<void> WriteAudit(Connection& db, std::span<const AuditNote> notes) {
  if (notes.empty()) return {};
  TRY(db.Flush());
  TRY(auto has_outbox, HasOutbox(db));
  // Last, so that the transaction waits for nothing while it has locked the head of the log.
  return has_outbox ? WriteOutbox(db, notes) : AppendToLog(db, notes);
}

SqlResult<int64_t> MoveAuditEntries(Connection& db) {
  std::vector<int32_t> shards;
  TRY(db.Query("SELECT DISTINCT shard FROM audit_outbox", {},
               [&](const Row& row) { shards.push_back(static_cast<int32_t>(row.Int(0))); }));
  int64_t moved = 0;
  std::optional<sql::SqlError> failed;
  for (const int32_t shard : shards) {
    auto of_shard = MoveShard(db, shard);
    if (of_shard.ok()) {
      moved += *of_shard;
      continue;
    }
    const sql::ErrorKind kind = of_shard.error().kind;
    if (kind == sql::ErrorKind::kLocked || kind == sql::ErrorKind::kRetry) continue;
    failed = std::move(of_shard).error();
    if (failed->no_answer || !db.healthy()) break;
  }
  if (failed && moved == 0) return Fail{*std::move(failed)};
  return moved;
}

}  // namespace tollgate::billing
