// Group commit: the operations of all calls wait in one queue, and all that wait when a commit ends
// become the next batch. There are no timers: a single operation runs at once
// (docs/design/ledger.md 10). If the database defers its syncs, a second thread syncs while the
// next batches run: replies that promise durability (settled, credit added) wait for the sync,
// replies to authorizes do not (docs/adr/0005).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/billing/commit/call.h"
#include "services/billing/commit/ledger_clock.h"
#include "services/billing/commit/operation_queue.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

// Runs batches in transactions. Each worker thread has its own runner.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual sql::SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) = 0;
  // Makes the connection usable after an error.
  virtual sql::SqlResult<void> Reconnect() = 0;
  // Called after kLocked: returns the workspaces of these operations that another transaction has
  // locked. Does not wait.
  virtual sql::SqlResult<std::vector<std::string>> Locked(std::span<const Operation> operations) {
    return std::vector<std::string>();
  }
  // Called after a batch of only this workspace has failed: if its wallet and entries contradict
  // each other, freezes the workspace and returns how. Empty if they agree.
  virtual sql::SqlResult<std::string> FreezeIfBroken(const std::string& workspace) {
    return std::string();
  }
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
  // Batches of this workspace fail; it gets separate batches from now on.
  virtual void OnIsolated(const std::string& workspace, const sql::SqlError& error) {}
  // Number of isolated workspaces that still fail (OperationQueue::Failing), several times a
  // second.
  virtual void OnFailing(size_t workspaces) {}
  // A node of a distributed database stopped answering with this error, or (null) answers again.
  virtual void OnNode(int32_t node, const sql::SqlError* error) {}
  // Wallet and entries of this workspace contradict each other; the workspace is frozen.
  virtual void OnBroken(const std::string& workspace, const std::string& what) {}
};

class GroupCommit {
 public:
  struct Options {
    size_t queue_limit = 4096;    // authorizes beyond it are refused at once
    size_t urgent_limit = 16384;  // likewise for all other operations
    size_t batch_limit = 256;
    int64_t call_timeout_ms = 2000;  // a call fails after this time, whatever the database does
    // A call with several operations, some of which have replies, is answered after this time, the
    // others with kUnavailable. So one waiting workspace does not delay others.
    int64_t part_timeout_ms = 500;
    // Timeout of every call when the ledger is distributed. Shorter than the callers' own, so that
    // one hung node does not make them eject this replica.
    int64_t node_timeout_ms = 800;
    int64_t reconnect_ms = 100;
    int64_t isolated_retry_ms = 100;  // between two attempts for an isolated workspace
  };
  // Receives the replies in the order of the operations, or an error. After an error the outcome is
  // unknown: the caller may retry with the same ids. Called once, on a worker thread, or on the
  // caller's thread for a call that is refused at once. A kUnavailable reply concerns its workspace
  // only; the operation may be retried in the same way.
  using Done = std::function<void(Result<std::vector<Reply>>)>;

  GroupCommit(Options options, const Clock& clock,
              std::vector<std::unique_ptr<BatchRunner>> runners,
              GroupCommitObserver* observer = nullptr,
              std::unique_ptr<sql::LogSync> sync = nullptr);
  ~GroupCommit();

  // Distributed database only: sets a function that returns whether a node answers. It runs on a
  // separate thread and may block. Call before Start.
  void WatchNodes(std::function<bool(int32_t node)> answers) { node_answers_ = std::move(answers); }
  void Start();
  // Fails the queued calls and lets running batches finish.
  void Stop();
  // Never blocks. Thread-safe.
  void Submit(std::vector<Operation> operations, Done done);
  // Limits each batch to one ledger shard. For a distributed database, which commits a change on
  // several servers in two phases (docs/adr/0040).
  void SetOneShard(bool one_shard);
  // Sets which node has which shards, for WatchNodes. A node that does not answer is set aside:
  // operations that need it are refused at once until it answers.
  void SetNodes(LedgerNodes nodes);
  bool HasNodeAside() const;
  // Whether the last batch reached the database.
  bool available() const;
  // Monotonic time from which the database has been available without interruption.
  int64_t available_since_us() const;
  int64_t NowUs() { return ledger_clock_.NowUs(); }
  LedgerClock& ledger_clock() { return ledger_clock_; }

 private:
  using PendingBatch = OperationQueue::Batch;

  void WorkerMain(size_t index);
  void WatchdogMain();
  // Answers calls that have waited for part_timeout_ms or node_timeout_ms.
  void AnswerSlow(int64_t now_us, bool distributed);
  void NodesMain();
  // Runs the batch until it is committed, its calls have failed, or its operations are back in the
  // queue.
  void Execute(size_t index, PendingBatch& batch);
  // Waits until the runner's database is reachable again. Returns false if the batch failed
  // meanwhile.
  bool Recover(size_t index, PendingBatch& batch, const sql::SqlError& error, int attempt);

  // isolation.cc: divides a batch that cannot be written until only the workspaces that cause the
  // failure fail.
  void Divide(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // Workspaces of the batch whose wallets another transaction has locked.
  std::set<std::string> LockedOf(size_t index, const PendingBatch& batch);
  void SetLockedAside(size_t index, PendingBatch& batch, const sql::SqlError& error,
                      std::set<std::string> locked);
  void FailAlone(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // Called if a node that the batch needs is unreachable or hangs.
  void SetNodeAside(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // Whether a node caused this error, while the database itself answers.
  bool IsOfANode(size_t index, const sql::SqlError& error);
  void Isolate(const std::string& workspace, const sql::SqlError& error);
  void ReplyUnavailable(PendingBatch& batch);

  static bool HasPendingCall(const PendingBatch& batch);
  bool Stopping() const;
  void SyncMain();
  void Complete(PendingBatch& batch, Applied applied);
  // Stores the replies in their calls and finishes the calls that have all of theirs.
  void SetReplies(std::vector<QueuedOperation>& operations, std::vector<Reply>& replies);
  // Finishes the call if these were its last operations.
  static void CountReplies(Call& call, size_t count);
  void FailBatch(PendingBatch& batch, const Error& error);
  void SetAvailable(bool available);
  // Sleeps, but returns early when stopped.
  void Pause(int64_t ms);
  static void Finish(Call& call, Result<std::vector<Reply>> result);

  const Options options_;
  const Clock& clock_;
  LedgerClock ledger_clock_;
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
  std::function<bool(int32_t node)> node_answers_;  // null: nodes are not set aside
  std::condition_variable aside_wake_;
  OperationQueue queue_;
  std::deque<std::weak_ptr<Call>> calls_;  // by deadline
  std::deque<std::weak_ptr<Call>> young_;  // calls that AnswerSlow may answer, oldest first
  std::vector<std::weak_ptr<Call>> slow_;  // older than part_timeout_ms; used by the watchdog
  std::vector<std::thread> threads_;

  // Replies of batches that are committed but not yet synced.
  std::mutex sync_mutex_;
  std::condition_variable sync_wake_;
  bool sync_stopping_ = false;
  std::vector<QueuedOperation> unsynced_operations_;
  std::vector<Reply> unsynced_replies_;
  std::thread sync_thread_;
};

}  // namespace tollgate::billing
