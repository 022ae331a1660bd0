// The settlements that the ledger has not acknowledged: an append-only file with a checksum per
// record, flushed in batches by its own thread and replayed at the next start. Records that cannot
// be read or delivered go to the file's quarantine. See docs/design/ledger.md 6.
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
#include "services/inference_router/settlement/file_header.h"
#include "services/inference_router/settlement/outbox_format.h"

namespace tollgate::inference_router {

class Outbox {
 public:
  // Called on the outbox's thread. False: the record could not be written (disk full).
  using OnDurable = std::function<void(bool durable)>;

  // Replays the file, moves damaged parts to the quarantine, drops a torn tail, writes the header
  // of this start, and starts the thread.
  static Result<std::unique_ptr<Outbox>> Open(const std::string& path, OpenAs open = {});
  // Writes the queued records, then stops the thread.
  ~Outbox();

  // The result of the check at the start, and the identity of the current file.
  FileCheck check() const { return check_; }
  const FileIdentity& identity() const { return header_.identity; }
  // The unacknowledged records when the file was opened, by key (OutboxKey).
  const std::map<std::string, std::string>& recovered() const { return recovered_; }

  // Thread-safe. At most one record per key. A failed flush aborts the process because it leaves
  // the state of the file unknown (docs/design/ledger.md 6).
  void Append(std::string key, std::string payload, OnDurable on_durable);
  // Call when the ledger has answered, so that the record may be dropped. Not flushed, because
  // settling twice is harmless.
  void Acknowledge(std::string key);
  // Moves the record of a settlement that cannot be delivered to the quarantine. payload: the
  // settlement, whether or not the outbox has a record of it. reason: a literal (quarantine.h).
  void MoveToQuarantine(std::string key, std::string payload, const char* reason);

  // Number of unacknowledged records.
  int64_t depth() const;

 private:
  enum class Action : uint8_t { kAppend, kAcknowledge, kQuarantine };
  struct Item {
    Action action = Action::kAppend;
    std::string key;
    std::string payload;
    OnDurable on_durable;
    const char* reason = "";
  };
  explicit Outbox(std::string path) : path_(std::move(path)) {}
  Result<void> Replay(const OpenAs& open);
  std::string QuarantinePath() const { return path_ + ".quarantine"; }
  void Push(Item item);
  void Run();
  void WriteBatch(std::vector<Item> batch);
  bool WriteAll(const std::string& bytes);
  void Compact();
  // Keeps the file and writes the header of this start.
  bool TakeOver();
  // Replaces the file by one with the header and the pending records.
  bool Rewrite();

  const std::string path_;
  int file_ = -1;
  FileHeader header_;
  FileCheck check_ = FileCheck::kFirst;
  int64_t size_ = 0;
  std::map<std::string, std::string> recovered_;
  // The unacknowledged records in the file. Used only by the outbox's thread.
  std::map<std::string, std::string> pending_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Item> queue_;
  int64_t depth_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::inference_router
