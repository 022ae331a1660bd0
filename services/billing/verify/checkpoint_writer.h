// Appends signed checkpoints of the ledger to a file, on its own thread and connection.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/checkpoint/checkpoint_file.h"
#include "common/error/error.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

class CheckpointWriter {
 public:
  struct Options {
    sql::Database::Options sql;
    std::string key_file;  // private
    std::string file;
    int64_t interval_ms = 60'000;
    bool payments = false;  // also the logs of payments, whose tables must exist
  };

  CheckpointWriter(Options options, const Clock& clock);
  ~CheckpointWriter() { Stop(); }

  // Reads the key and the last line of the file, and starts the thread.
  Result<void> Start();
  // Writes a last checkpoint. Call it when nothing books any more.
  void Stop();

  // Writes one checkpoint now; the last one only if something has changed. For the thread and for
  // tests. Returns an empty string, or what went wrong.
  std::string Write(sql::Connection& connection, bool last = false);

 private:
  void Main();
  // Reads the heads that have changed since the last checkpoint.
  sql::SqlResult<void> ReadHeads(sql::Connection& connection, std::string_view table,
                                 std::string_view prefix, Checkpoint& checkpoint);
  // Reads the digests of archived states, if a month was archived since the last checkpoint.
  sql::SqlResult<void> ReadArchive(sql::Connection& connection, Checkpoint& checkpoint);
  sql::SqlResult<void> ReadAuditHead(sql::Connection& connection, Checkpoint& checkpoint);
  void Add(Checkpoint& checkpoint, Anchor anchor) const;
  // Returns false if the writer stops meanwhile.
  bool Sleep(int64_t ms);

  const Options options_;
  const Clock& clock_;
  std::optional<CheckpointFile> file_;
  std::unique_ptr<sql::LogSync> sync_;      // null: every commit is durable
  std::map<std::string, int64_t> written_;  // sequence by chain
  int64_t archived_us_ = 0;                 // the newest archive whose digests are written
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
