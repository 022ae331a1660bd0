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

// Runs batches in transactions: one per worker thread, used by that thread only.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual sql::SqlResult<Applied> Run(std::span<const Operation> operations, int64_t now_us) = 0;
  // Makes the connection usable again after an error.
  virtual sql::SqlResult<void> Reconnect() = 0;
  // After kLocked: the workspaces of these operations that another transaction holds. Does not
  // wait.
  virtual sql::SqlResult<std::vector<std::string>> Locked(std::span<const Operation> operations) {
    return std::vector<std::string>();
  }
  // After a batch of this workspace alone has failed: freezes it when its books contradict each
  // other, and says how; empty when they do not.
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
  // Batches of this workspace fail; from now on it gets batches of its own.
  virtual void OnIsolated(const std::string& workspace, const sql::SqlError& error) {}
  // Several times a second: how many of these workspaces still fail (OperationQueue::Failing).
  virtual void OnFailing(size_t workspaces) {}
  // A node of a distributed database does not answer, as the error says, or (null) answers again.
  virtual void OnNode(int32_t node, const sql::SqlError* error) {}
  // Wallet and entries of this workspace contradict each other; it is frozen.
  virtual void OnBroken(const std::string& workspace, const std::string& what) {}
};

class GroupCommit {
 public:
  struct Options {
    size_t queue_limit = 4096;    // authorizes beyond it are refused at once
    size_t urgent_limit = 16384;  // the same for all other operations
    size_t batch_limit = 256;
    int64_t call_timeout_ms = 2000;  // a call fails after this, whatever the database does
    // A call of several operations of which some have their replies is answered after this, the
    // others with kUnavailable: one workspace that waits keeps no others waiting.
    int64_t part_timeout_ms = 500;
    // The same of each call on a distributed database, of which a node may stand still: earlier
    // than callers take the whole service for lost.
    int64_t node_timeout_ms = 800;
    int64_t reconnect_ms = 100;
    int64_t isolated_retry_ms = 100;  // between two tries of an isolated workspace
  };
  // The replies in the order of the operations, or an error. After an error the outcome is unknown:
  // the caller may retry with the same ids. Called once, on a worker thread, or on the caller's
  // thread for a call that is refused at once.
  // A reply of kUnavailable concerns its workspace only, and is to be asked again in the same way.
  using Done = std::function<void(Result<std::vector<Reply>>)>;

  GroupCommit(Options options, const Clock& clock,
              std::vector<std::unique_ptr<BatchRunner>> runners,
              GroupCommitObserver* observer = nullptr,
              std::unique_ptr<sql::LogSync> sync = nullptr);
  ~GroupCommit();

  // Of a distributed database: whether a node answers, called on a thread of its own, which may
  // wait. Before Start.
  void WatchNodes(std::function<bool(int32_t node)> answers) { node_answers_ = std::move(answers); }
  void Start();
  // Fails the queued calls and lets running batches finish.
  void Stop();
  // Never blocks. Thread-safe.
  void Submit(std::vector<Operation> operations, Done done);
  // Whether a batch is of one ledger shard: for a distributed database, where one that changes
  // several servers is committed in two phases (docs/adr/0040).
  void SetOneShard(bool one_shard);
  // Which node has which shards, for WatchNodes. One that does not answer is set aside: what needs
  // it is refused, without being tried, until it answers.
  void SetNodes(LedgerNodes nodes);
  bool HasNodeAside() const;
  // Whether the last batch reached the database.
  bool available() const;
  // Monotonic time since when the database has been available without interruption.
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
  // Waits until the runner's database is reachable again. False when the batch has failed
  // meanwhile.
  bool Recover(size_t index, PendingBatch& batch, const sql::SqlError& error, int attempt);

  // isolation.cc: a batch that cannot be written is divided until only those workspaces fail that
  // are the cause.
  void Divide(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // The workspaces of the batch whose wallets another transaction holds.
  std::set<std::string> LockedOf(size_t index, const PendingBatch& batch);
  void SetLockedAside(size_t index, PendingBatch& batch, const sql::SqlError& error,
                      std::set<std::string> locked);
  void FailAlone(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // A node of a distributed database that the batch needs is unreachable or stands still.
  void SetNodeAside(size_t index, PendingBatch& batch, const sql::SqlError& error);
  // Whether it is so after this error: the database itself answers.
  bool IsOfANode(size_t index, const sql::SqlError& error);
  void Isolate(const std::string& workspace, const sql::SqlError& error);
  void ReplyUnavailable(PendingBatch& batch);

  static bool HasPendingCall(const PendingBatch& batch);
  bool Stopping() const;
  void SyncMain();
  void Complete(PendingBatch& batch, Applied applied);
  // Stores the replies in their calls and finishes the calls that have all of theirs.
  void SetReplies(std::vector<QueuedOperation>& operations, std::vector<Reply>& replies);
  // Finishes the call when these were its last.
  static void CountReplies(Call& call, size_t count);
  void FailBatch(PendingBatch& batch, const Error& error);
  void SetAvailable(bool available);
  // Sleeps unless stopped.
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
  std::deque<std::weak_ptr<Call>> young_;  // those that AnswerSlow may concern, oldest first
  std::vector<std::weak_ptr<Call>> slow_;  // older than part_timeout_ms; of the watchdog
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
