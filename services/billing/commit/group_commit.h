// Group commit: the operations of all calls wait in one queue, and whatever waits when a commit
// ends is the next batch. No timers: a lone operation runs at once (docs/design/ledger.md 10).
// Where the database defers its syncs, a second thread syncs while the next batches run: replies
// that promise durability (settled, credit added) wait for the sync, holds do not (docs/adr/0005).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Runs batches in transactions: one per worker thread, used by that thread only.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual sql::SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) = 0;
  // Makes the connection usable again after an error.
  virtual sql::SqlResult<void> Reconnect() = 0;
};

// Events for metrics and logs. Called on worker threads.
class GroupCommitObserver {
 public:
  virtual ~GroupCommitObserver() = default;
  virtual void OnBatch(std::span<const Operation> operations, const Applied& applied,
                       int64_t took_us) {}
  virtual void OnSync(int64_t took_us) {}
  virtual void OnQueue(size_t waiting) {}
  virtual void OnError(const sql::SqlError& error) {}
  virtual void OnRefused() {}
};

class GroupCommit {
 public:
  struct Options {
    size_t queue_limit = 4096;    // authorizes beyond it are refused at once
    size_t urgent_limit = 16384;  // the same for all other operations
    size_t batch_limit = 256;
    int64_t call_timeout_ms = 2000;  // a call fails after this, whatever the database does
    int64_t reconnect_ms = 100;
    int64_t clock_back_us = 1'000'000;  // authorizes are refused after a larger step back
  };
  // The replies in the order of the operations, or an error. After an error the outcome is unknown:
  // the caller may retry with the same ids. Called once, on a worker thread, or on the caller's
  // thread for a call that is refused at once.
  using Done = std::function<void(Result<std::vector<Reply>>)>;

  GroupCommit(Options options, const Clock& clock,
              std::vector<std::unique_ptr<BatchRunner>> runners,
              GroupCommitObserver* observer = nullptr,
              std::unique_ptr<sql::LogSync> sync = nullptr);
  ~GroupCommit();

  void Start();
  // Fails the queued calls and lets running batches finish.
  void Stop();
  // Never blocks. Thread-safe.
  void Submit(std::vector<Operation> operations, Done done);
  // Whether the last batch reached the database.
  bool available() const;
  // Monotonic time since when the database has been available without interruption.
  int64_t available_since_us() const;
  // The ledger's time: the wall clock, but never decreasing.
  int64_t NowUs();

 private:
  struct Call;
  struct QueuedOperation {
    std::shared_ptr<Call> call;
    size_t index = 0;  // in the call
  };
  struct PendingBatch;

  void WorkerMain(size_t index);
  void WatchdogMain();
  // Moves queued operations into the batch; false when there are none.
  bool FillBatch(PendingBatch& batch);
  void TakeFrom(std::deque<QueuedOperation>& queue, PendingBatch& batch);
  // Runs the batch until it is committed or its calls have failed.
  void Execute(size_t index, PendingBatch& batch);
  void ExecuteOneByOne(size_t index, PendingBatch& batch);
  // Whether the call has no result yet.
  static bool IsPending(Call& call);
  static bool HasPendingCall(const PendingBatch& batch);
  bool Stopping() const;
  void SyncMain();
  void Complete(PendingBatch& batch, Applied applied);
  // Stores the replies in their calls and finishes the calls that have all of theirs.
  void SetReplies(std::vector<QueuedOperation>& operations, std::vector<Reply>& replies);
  void FailBatch(PendingBatch& batch, const Error& error);
  void SetAvailable(bool available);
  // Sleeps unless stopped.
  void Pause(int64_t ms);
  static void Finish(Call& call, Result<std::vector<Reply>> result);

  const Options options_;
  const Clock& clock_;
  std::vector<std::unique_ptr<BatchRunner>> runners_;
  GroupCommitObserver* const observer_;
  const std::unique_ptr<sql::LogSync> sync_;  // null: every commit is durable

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable stop_wake_;
  bool running_ = false;
  bool stopping_ = false;
  bool available_ = true;
  int64_t available_since_us_ = 0;
  int64_t last_now_us_ = 0;
  std::deque<QueuedOperation>
      urgent_;  // operations that release credit or follow a running request
  std::deque<QueuedOperation> normal_;    // authorizes
  std::unordered_set<std::string> busy_;  // workspaces in a running batch; no two batches share one
  std::deque<std::weak_ptr<Call>> calls_;  // by deadline
  std::vector<std::thread> threads_;

  // Committed, not yet synced.
  std::mutex sync_mutex_;
  std::condition_variable sync_wake_;
  bool sync_stopping_ = false;
  std::vector<QueuedOperation> unsynced_operations_;
  std::vector<Reply> unsynced_replies_;
  std::thread sync_thread_;
};

}  // namespace tollgate::billing
