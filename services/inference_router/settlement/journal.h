// The running requests in a memory-mapped file: one fixed slot per request, updated with plain
// stores on every token. It survives a crash of the process because the page cache does. After
// another boot it is not used: slots are never known to be flushed, so the ledger charges the last
// heartbeat. See docs/design/ledger.md 5, 6.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "services/inference_router/settlement/file_header.h"
#include "tollgate/common/v1/usage.pb.h"

namespace tollgate::inference_router {

struct JournalStart {
  std::string_view request_id;  // 16 bytes
  std::string_view workspace_id;
  std::string_view key_id;
  std::string_view model;
  // The answer is sent while it is produced, so the caller may have a part of it.
  bool streamed = false;
  // Number of the attempt (MeterOp.attempt), at most kMaxAttempt.
  int32_t attempt = 0;
};

// One running request. Updated only by the request's own thread.
class JournalSlot {
 public:
  // Sets the engine of the current run.
  void SetEngine(std::string_view engine_id);
  // Call when the engine has accepted the request: from then on the prompt is charged.
  void SetAccepted();
  void SetUsage(int64_t prompt, int64_t completion);
  void SetDetails(int64_t cached, int64_t cache_write, int64_t reasoning);
  // Returns the next sequence number of an operation on the hold.
  int64_t NextSequence();

 private:
  friend class Journal;
  struct Layout;
  struct Details {
    int64_t accepted = 0, sequence = 0, cached = 0, cache_write = 0, reasoning = 0;
  };
  explicit JournalSlot(Layout* layout) : layout_(layout) {}
  void Start();
  void WriteDetails();

  Layout* layout_;
  // State for the next update, so that it does not read the file.
  uint64_t seed_ = 0;
  uint64_t usage_version_ = 0;
  uint64_t details_version_ = 0;
  Details details_;
};

// A request that was running when a previous process exited.
struct JournalEntry {
  JournalSlot* slot = nullptr;
  std::string request_id;
  std::string workspace_id;
  std::string key_id;
  std::string model;
  std::string engine_id;
  int64_t sequence = 0;
  bool streamed = false;
  int32_t attempt = 0;
  bool accepted = false;
  common::v1::Usage usage;
};

// What a start found in the file. Slots that were not recovered are free again; the ledger ends
// their holds with the last heartbeat.
struct JournalFound {
  FileCheck check = FileCheck::kFirst;
  FileIdentity identity;   // the current file's
  int64_t recovered = 0;   // requests that this router settles
  int64_t older_copy = 0;  // recovered requests without their last update
  int64_t other_boot = 0;  // requests of another boot, or of a foreign or older file
  int64_t damaged = 0;     // slots whose names or counters are damaged
};

// Thread-safe, except for the slots.
class Journal {
 public:
  static constexpr int32_t kMaxAttempt = 127;
  // Limit on each name in a slot.
  static constexpr size_t kMaxNameBytes = 120;

  static Result<std::unique_ptr<Journal>> Open(const std::string& path, OpenAs open = {});
  ~Journal();

  const JournalFound& found() const { return found_; }
  // The requests in the file when it was opened. Their slots stay in use until released.
  const std::vector<JournalEntry>& recovered() const { return recovered_; }
  // Returns null if the id is invalid, a name is too long, or the disk is full.
  JournalSlot* Acquire(const JournalStart& start);
  void Release(JournalSlot* slot);
  int64_t in_use() const;

 private:
  struct Segment;
  explicit Journal(int file);
  bool MapHeader();
  bool AddSegment(bool scan, bool trusted);
  void Scan(JournalSlot& slot, bool trusted);

  const int file_;
  void* header_ = nullptr;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<JournalSlot*> free_;
  std::vector<JournalEntry> recovered_;
  JournalFound found_;
  int64_t in_use_ = 0;
};

}  // namespace tollgate::inference_router
