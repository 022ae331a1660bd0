// The settlements that the ledger has not acknowledged: an append-only file with a checksum per
// record, flushed in batches by its own thread and replayed at the next start. See
// docs/design/ledger.md 6.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/error/error.h"

namespace tollgate::inference_router {

class Outbox {
 public:
  // Called on the outbox's thread. False: the record could not be written (disk full).
  using OnDurable = std::function<void(bool durable)>;

  // Replays the file, truncates a torn tail, and starts the thread.
  static Result<std::unique_ptr<Outbox>> Open(const std::string& path);
  // Writes the queued records, then stops the thread.
  ~Outbox();

  // The unacknowledged records when the file was opened, by request id.
  const std::map<std::string, std::string>& recovered() const { return recovered_; }

  // Thread-safe. The id is 16 bytes; at most one record per id. A failed flush aborts the process,
  // since the state of the file is unknown after it (docs/design/ledger.md 6).
  void Append(std::string id, std::string payload, OnDurable on_durable);
  // The ledger answered: the record may be dropped. Not flushed, since settling twice is harmless.
  void Acknowledge(std::string id);

  // Number of unacknowledged records.
  int64_t depth() const;

 private:
  struct Item {
    bool acknowledge = false;
    std::string id;
    std::string payload;
    OnDurable on_durable;
  };
  Outbox(std::string path, int file) : path_(std::move(path)), file_(file) {}
  bool Replay();
  void Run();
  void WriteBatch(std::vector<Item> batch);
  bool WriteAll(const std::string& bytes);
  void Compact();

  const std::string path_;
  int file_;
  int64_t size_ = 0;
  std::map<std::string, std::string> recovered_;
  // Used by the outbox's thread only: the unacknowledged records in the file.
  std::map<std::string, std::string> pending_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> queue_;
  int64_t depth_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::inference_router
