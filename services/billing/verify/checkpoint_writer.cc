#include "services/billing/verify/checkpoint_writer.h"

#include <chrono>

#include "common/audit/log.h"
#include "common/base/try.h"
#include "common/base/workspace_id.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/storage/background_connection.h"

namespace tollgate::billing {
CheckpointWriter::CheckpointWriter(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

Result<void> CheckpointWriter::Start() {
  if (options_.file.empty() || options_.key_file.empty()) {
    return BadRequest("billing.checkpoint_file and billing.checkpoint_key_file require each other");
  }
  auto file = CheckpointFile::Open(options_.file, options_.key_file);
  if (!file.ok()) return BadRequest("billing.checkpoint_key_file: " + file.error());
  file_ = std::move(*file);
  auto database = sql::Database::Open(options_.sql);
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  sync_ = (*database)->MakeLogSync();
  thread_ = std::thread([this] { Main(); });
  return {};
}

void CheckpointWriter::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool CheckpointWriter::Sleep(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void CheckpointWriter::Main() {
  auto& written = metrics::Counter("tollgate_billing_checkpoints_total",
                                   "Signed checkpoints of the ledger that were written.");
  auto& failures = metrics::Counter("tollgate_billing_checkpoint_failures_total",
                                    "Signed checkpoints of the ledger that could not be written.");
  std::unique_ptr<sql::Connection> connection;
  int64_t wait_ms = 0;  // the first checkpoint is written at once
  for (bool more = true; more;) {
    // After a stop, one more: what was booked since the one before would be anchored only by the
    // next start.
    more = Sleep(wait_ms);
    wait_ms = options_.interval_ms;
    std::string failed;
    if (auto connected = EnsureConnected(options_.sql, &connection); !connected.ok()) {
      failed = connected.error().message;
    }
    if (failed.empty()) failed = Write(*connection, /*last=*/!more);
    if (failed.empty()) {
      written.Increment();
    } else {
      failures.Increment();
      log::Error("no checkpoint of the ledger was written, retrying",
                 {{"file", options_.file}, {"reason", failed}});
    }
  }
}

void CheckpointWriter::Add(Checkpoint& checkpoint, Anchor anchor) const {
  const auto last = written_.find(anchor.chain);
  if (last != written_.end() && last->second == anchor.sequence) return;
  checkpoint.anchors.push_back(std::move(anchor));
}

sql::SqlResult<void> CheckpointWriter::ReadHeads(sql::Connection& connection,
                                                 std::string_view table, std::string_view prefix,
                                                 Checkpoint& checkpoint) {
  int64_t shard = -1;
  std::string workspace;
  constexpr int kPage = 2000;
  for (int seen = kPage; seen == kPage;) {
    seen = 0;
    const std::string after = workspace;
    auto read = connection.Query(
        "SELECT shard, workspace, sequence, head FROM " + std::string(table) +
            " WHERE (shard, workspace) > ($1, $2) ORDER BY shard, workspace LIMIT " +
            std::to_string(kPage),
        {shard, after}, [&](const sql::Row& row) {
          ++seen;
          shard = row.Int(0);
          workspace = row.Text(1);
          // Skips names that the ledger never creates: they could not be read back.
          if (row.Int(2) == 0 || !IsWorkspaceId(workspace)) return;
          Add(checkpoint, {std::string(prefix) + workspace, row.Int(2), row.Text(3)});
        });
    if (!read.ok()) return read;
  }
  return {};
}

// The digests follow large states in their rows, so they are not read for every checkpoint.
sql::SqlResult<void> CheckpointWriter::ReadArchive(sql::Connection& connection,
                                                   Checkpoint& checkpoint) {
  int64_t newest_us = 0;
  auto read = connection.Query("SELECT max(at_us) FROM archive", {},
                               [&](const sql::Row& row) { newest_us = row.Int(0); });
  if (!read.ok() || newest_us == archived_us_) return read;
  bool complete = true;
  read = connection.Query(
      "SELECT workspace, month, digest FROM archive_workspace", {}, [&](const sql::Row& row) {
        complete = complete && !row.IsNull(2);
        if (row.IsNull(2) || !IsWorkspaceId(row.Bytes(0))) return;
        Add(checkpoint, {std::string(kArchiveChain) + row.Text(0), row.Int(1), row.Text(2)});
      });
  if (read.ok() && complete) archived_us_ = newest_us;
  return read;
}

sql::SqlResult<void> CheckpointWriter::ReadAuditHead(sql::Connection& connection,
                                                     Checkpoint& checkpoint) {
  TRY(auto head, audit::ReadHead(connection, audit::kEntries));
  if (!head || head->sequence == 0) return {};
  Add(checkpoint, {std::string(kBillingAuditChain), head->sequence, std::move(head->hash)});
  return {};
}

std::string CheckpointWriter::Write(sql::Connection& connection, bool last) {
  Checkpoint checkpoint;
  checkpoint.at_us = clock_.WallUs();
  const int64_t archived_us = archived_us_;
  auto read = [&]() -> sql::SqlResult<void> {
    TRY(auto snapshot, sql::Transaction::Begin(connection, sql::TxMode::kRead));
    auto heads = ReadHeads(connection, "wallet", "", checkpoint);
    if (heads.ok() && options_.payments) {
      heads = ReadHeads(connection, "payment_head", kPaymentChain, checkpoint);
    }
    if (!heads.ok()) return heads;
    TRY(ReadAuditHead(connection, checkpoint));
    return ReadArchive(connection, checkpoint);
  }();
  std::string failed = read.ok() ? "" : read.error().message;
  if (last && failed.empty() && checkpoint.anchors.empty()) return "";
  // With deferred_sync a hold may be read before it is on the disk.
  if (failed.empty() && sync_) sync_->Sync();
  if (failed.empty()) failed = file_->Append(checkpoint);
  if (!failed.empty()) {
    archived_us_ = archived_us;
    return failed;
  }
  for (const Anchor& anchor : checkpoint.anchors) written_[anchor.chain] = anchor.sequence;
  return "";
}

}  // namespace tollgate::billing
