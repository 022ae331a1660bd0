#include "services/billing/verify/checkpoint_writer.h"

#include <chrono>

#include "common/base/workspace_id.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/storage/background_connection.h"

namespace tollgate::billing {
namespace {

// With deferred_sync a hold may be read before it is on the disk. It is flushed before its
// checkpoint is written, or the process has aborted.
constexpr int64_t kFlushedMs = 5'000;

}  // namespace

CheckpointWriter::CheckpointWriter(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

Result<void> CheckpointWriter::Start() {
  if (options_.file.empty() || options_.key_file.empty()) {
    return BadRequest("billing.checkpoint_file and billing.checkpoint_key_file require each other");
  }
  auto file = CheckpointFile::Open(options_.file, options_.key_file);
  if (!file.ok()) return BadRequest("billing.checkpoint_key_file: " + file.error());
  file_ = std::move(*file);
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
  do {
    std::string failed;
    if (auto connected = EnsureConnected(options_.sql, &connection); !connected.ok()) {
      failed = connected.error().message;
    }
    if (failed.empty()) failed = Write(*connection);
    if (failed.empty()) {
      written.Increment();
    } else {
      failures.Increment();
      log::Error("no checkpoint of the ledger was written, retrying",
                 {{"file", options_.file}, {"reason", failed}});
    }
  } while (Sleep(options_.interval_ms));
}

sql::SqlResult<void> CheckpointWriter::ReadHeads(sql::Connection& connection,
                                                 Checkpoint& checkpoint) {
  auto snapshot = sql::Transaction::Begin(connection, sql::TxMode::kRead);
  if (!snapshot.ok()) return Fail{std::move(snapshot).error()};
  int64_t shard = -1;
  std::string workspace;
  constexpr int kPage = 2000;
  for (int seen = kPage; seen == kPage;) {
    seen = 0;
    const std::string after = workspace;
    auto read = connection.Query(
        "SELECT shard, workspace, sequence, head FROM wallet WHERE (shard, workspace) > ($1, $2)"
        " ORDER BY shard, workspace LIMIT " +
            std::to_string(kPage),
        {shard, after}, [&](const sql::Row& row) {
          ++seen;
          shard = row.Int(0);
          workspace = row.Text(1);
          const auto last = written_.find(workspace);
          if (last != written_.end() && last->second == row.Int(2)) return;
          // Skips names that the ledger never creates: they could not be read back.
          if (row.Int(2) == 0 || !IsWorkspaceId(workspace)) return;
          checkpoint.anchors.push_back({workspace, row.Int(2), row.Text(3)});
        });
    if (!read.ok()) return read;
  }
  return {};
}

std::string CheckpointWriter::Write(sql::Connection& connection) {
  Checkpoint checkpoint;
  checkpoint.at_us = clock_.WallUs();
  if (auto read = ReadHeads(connection, checkpoint); !read.ok()) return read.error().message;
  if (options_.sql.deferred_sync && !Sleep(kFlushedMs)) return "";
  if (std::string failed = file_->Append(checkpoint); !failed.empty()) return failed;
  for (const Anchor& anchor : checkpoint.anchors) written_[anchor.chain] = anchor.sequence;
  return "";
}

}  // namespace tollgate::billing
