// Group commit: operations of all callers wait in one queue; whatever waits when a commit ends is
// the next batch. No timers: a lone operation runs at once. spec: reliability.md 1.10.
// Where the database defers its syncs, a second thread syncs while the next batches run: answers
// that promise something (settled, credit added) wait for it, holds do not (docs/adr/0005).
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

// Where batches go: one per worker thread, used by that thread only.
class BatchRunner {
 public:
  virtual ~BatchRunner() = default;
  virtual sql::SqlResult<Applied> Run(std::span<const Op> ops, int64_t now_us) = 0;
  // Makes the connection usable again after an error.
  virtual sql::SqlResult<void> Reconnect() = 0;
};

// What the engine tells about itself, for metrics. Called on worker threads.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void OnBatch(std::span<const Op> ops, const Applied& applied, int64_t took_us) {}
  virtual void OnSync(int64_t took_us) {}
  virtual void OnQueue(size_t waiting) {}
  virtual void OnError(const sql::SqlError& error) {}
  virtual void OnRefused() {}
};

class GroupCommit {
 public:
  struct Options {
    size_t queue_limit = 4096;    // authorizes beyond it are refused at once
    size_t urgent_limit = 16384;  // the same for everything else
    size_t batch_limit = 256;
    int64_t call_timeout_ms = 2000;  // after it a caller gets an error, whatever the database does
    int64_t reconnect_ms = 100;
    int64_t clock_back_us = 1'000'000;  // a clock that steps back further stops authorizes
  };
  // The replies in the order of the operations, or why there are none (then their fate is unknown
  // to the caller: it may ask again with the same ids). Called once, on a worker thread or, for
  // refusals, on the caller's.
  using Done = std::function<void(Result<std::vector<Reply>>)>;

  GroupCommit(Options options, const Clock& clock,
              std::vector<std::unique_ptr<BatchRunner>> runners, EngineObserver* observer = nullptr,
              std::unique_ptr<sql::LogSync> sync = nullptr);
  ~GroupCommit();

  void Start();
  // Fails what still waits, lets running batches end.
  void Stop();
  // Never blocks. Thread-safe.
  void Submit(std::vector<Op> ops, Done done);
  // Whether the database answered last time.
  bool available() const;
  // Microseconds of the monotonic clock since when the database has answered without a break.
  int64_t available_since_us() const;
  // The ledger's time: the wall clock, but never running back.
  int64_t Now();

 private:
  struct Call;
  struct Item {
    std::shared_ptr<Call> call;
    size_t index = 0;
  };
  struct Work;  // a batch on its way

  void WorkerMain(size_t index);
  void WatchdogMain();
  bool Pick(Work& work);
  void Take(std::deque<Item>& queue, Work& work);
  void RunWork(size_t index, Work& work);
  void RunOneByOne(size_t index, Work& work);
  static bool Waits(Call& call);
  bool AnyoneWaits(const Work& work) const;
  bool Stopping() const;
  void SyncMain();
  void Complete(Work& work, Applied applied);
  // Gives these operations' replies to their calls.
  void Answer(std::vector<Item>& items, std::vector<Reply>& replies);
  void FailWork(Work& work, const Error& error);
  void SetAvailable(bool available);
  // Sleeps unless stopped.
  void Pause(int64_t ms);
  static void Finish(Call& call, Result<std::vector<Reply>> result);

  const Options options_;
  const Clock& clock_;
  std::vector<std::unique_ptr<BatchRunner>> runners_;
  EngineObserver* const observer_;
  const std::unique_ptr<sql::LogSync> sync_;  // null: what has run is durable

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable stop_wake_;
  bool running_ = false;
  bool stopping_ = false;
  bool available_ = true;
  int64_t available_since_us_ = 0;
  int64_t last_now_us_ = 0;
  std::deque<Item> urgent_;  // everything that frees credit or follows a running request
  std::deque<Item> normal_;  // authorizes
  std::unordered_set<std::string> busy_;  // workspaces in a running batch; no two batches share one
  std::deque<std::weak_ptr<Call>> calls_;  // by deadline
  std::vector<std::thread> threads_;

  // Committed, not yet synced.
  std::mutex sync_mutex_;
  std::condition_variable sync_wake_;
  bool sync_stopping_ = false;
  std::vector<Item> unsynced_items_;
  std::vector<Reply> unsynced_replies_;
  std::thread sync_thread_;
};

}  // namespace tollgate::billing
