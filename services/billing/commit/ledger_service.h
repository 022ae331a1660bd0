// The running ledger: database, group commit, expiry and reading, without any RPC.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/billing/commit/group_commit.h"
#include "services/billing/commit/ledger_metrics.h"

namespace tollgate::billing {

class LedgerService {
 public:
  struct Options {
    sql::Database::Options sql;
    Policy policy;
    GroupCommit::Options engine;
    int64_t sweep_ms = 1000;  // between looks for holds whose time is over
  };
  using Done = GroupCommit::Done;

  LedgerService(Options options, const Clock& clock);
  ~LedgerService();

  // SQLite: opens the file. PostgreSQL: a server that is away is waited for in the background.
  Result<void> Start();
  void Stop();
  bool Ready() const;

  // Never blocks; done runs on a thread of the ledger's (or at once, when refused). Thread-safe.
  void Submit(std::vector<Op> ops, Done done);
  // Runs read on a thread that may block, or refused (with the reason) when there are too many.
  // Exactly one of the two is called.
  void Read(std::function<void(sql::Database&)> read, std::function<void(Error)> refused);
  int64_t Now() { return open_ ? engine_->Now() : clock_.WallUs(); }

 private:
  Result<void> Open();
  void KeeperMain();
  void ReaderMain();
  void Sweep();
  // Waits; false when it is time to end.
  bool Sleep(int64_t ms);

  const Options options_;
  const Clock& clock_;
  std::unique_ptr<sql::Database> database_;
  MetricsObserver observer_;
  std::unique_ptr<GroupCommit> engine_;

  std::atomic<bool> open_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  struct ReadJob {
    std::function<void(sql::Database&)> read;
    std::function<void(Error)> refused;
  };
  std::deque<ReadJob> reads_;
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::billing
