// The running ledger: database, group commit, expiry and reads. Independent of the RPC layer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/billing/commit/busy_workspaces.h"
#include "services/billing/commit/group_commit.h"
#include "services/billing/commit/ledger_metrics.h"
#include "services/billing/commit/report_standby.h"
#include "services/billing/storage/reports.h"

namespace tollgate::billing {

class LedgerService {
 public:
  struct Options {
    sql::Database::Options sql;
    Policy policy;
    GroupCommit::Options group_commit;
    int64_t expiry_interval_ms = 1000;  // between searches for expired holds
    // PostgreSQL: the ledger's time is the database's, so that all replicas have the same. False:
    // this process's, for tests that set it.
    bool database_time = true;
    // Workspaces with more requests in a second have leases; 0: none has.
    int64_t lease_above_per_second = 500;
    // For reports; by default there is no standby.
    ReportStandby::Options reports;
  };
  using Done = GroupCommit::Done;

  LedgerService(Options options, const Clock& clock);
  ~LedgerService();

  // Called on the ledger's threads after each commit; must not block. Added before Start.
  void OnCommitted(std::function<void(std::span<const Operation>)> listener) {
    metrics_.listeners.push_back(std::move(listener));
  }

  // SQLite: opens the file, or fails. PostgreSQL: returns at once; while the server is unreachable
  // Ready is false, and a thread retries.
  Result<void> Start();
  // Refuses what waits at once, then waits for what runs.
  void Stop();
  bool Ready() const;

  // Never blocks. done runs on one of the ledger's threads, or at once when refused. Thread-safe.
  void Submit(std::vector<Operation> operations, Done done);
  // Runs read on a thread that may block, or refused when the ledger is not open, too many reads
  // wait, or the caller has left before its turn. Exactly one of the two is called. Statements of a
  // read whose caller leaves are ended.
  void Read(
      std::function<void(sql::Database&)> read, std::function<void(Error)> refused,
      std::function<bool()> cancelled = [] { return false; });
  // Where a report is read instead, without what was committed within Options::reports.max_lag_ms;
  // null: nowhere else. Never for what decides. For reads.
  sql::Database* report_database() { return reports_ ? reports_->Fresh() : nullptr; }
  bool has_reports() const { return reports_ != nullptr; }
  // Whether routers may have leases on the workspace's credit. Thread-safe.
  bool HasLeases(std::string_view workspace) const { return busy_.IsBusy(workspace); }
  // Whether the ledger is distributed over several servers, and all of them answer, as far as
  // batches tell. Thread-safe.
  bool NodesServe() const { return distributed_ && !group_commit_->HasNodeAside(); }
  int64_t NowUs() { return open_ ? group_commit_->NowUs() : clock_.WallUs(); }

 private:
  Result<void> Open();
  // Opens the database when Start has not, then expires holds.
  void MaintenanceMain();
  void ReaderMain();
  // Compares the clocks.
  sql::SqlResult<void> ReadClocks();
  // Whether batches are to be of one ledger shard.
  sql::SqlResult<void> ReadDistribution();
  // Whether all nodes of a distributed ledger answer, as far as batches tell.
  bool AllNodesAnswer() const { return !distributed_ || !group_commit_->HasNodeAside(); }
  void LookForDoubts();
  // What each round of the maintenance reads. False: the database did not answer.
  bool Probe();
  void ExpireHolds();
  // The same of leases, which gateways and routers renew while billing answers.
  void ExpireLeases();
  // Whether the database has answered for so long without interruption.
  bool HasServedFor(int64_t us) const;
  // How many of these were not refused.
  int64_t Expire(std::vector<Operation> operations);
  // PostgreSQL: the partitions of the coming months.
  void MakePartitions();
  void DeleteIdempotencyKeys();
  // False when the ledger stops meanwhile.
  bool Sleep(int64_t ms);
  // Before each statement of the maintenance that may hang with the database.
  enum class Asks : uint8_t { kCoordinator, kAllNodes };
  void NextStep(Asks asks);

  struct Observer : LedgerMetrics {
    explicit Observer(BusyWorkspaces& busy) : busy(busy) {}
    void OnBatch(std::span<const Operation> operations, const Applied& applied,
                 int64_t took_us) override {
      LedgerMetrics::OnBatch(operations, applied, took_us);
      busy.OnBatch(operations, applied);
      for (const auto& listener : listeners) listener(operations);
    }
    BusyWorkspaces& busy;
    std::vector<std::function<void(std::span<const Operation>)>> listeners;
  };

  const Options options_;
  const Clock& clock_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<sql::Database> write_database_;  // the same one, with the limits of writers
  std::unique_ptr<ReportStandby> reports_;         // null: none
  BusyWorkspaces busy_;
  Observer metrics_;
  std::unique_ptr<GroupCommit> group_commit_;

  std::atomic<bool> open_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopping_ = false;
  struct ReadJob {
    std::function<void(sql::Database&)> read;
    std::function<void(Error)> refused;
    std::function<bool()> cancelled;
  };
  std::deque<ReadJob> reads_;
  // Whether the database answered the last probe, which notices an outage without traffic.
  std::atomic<bool> reached_ = true;
  // Of the maintenance's statements, in real time, as that of Sleep.
  static constexpr std::chrono::steady_clock::time_point kIdle{};
  std::atomic<std::chrono::steady_clock::time_point> step_begun_ = kIdle;
  // When the database was last found not to answer, or the process not to run: heartbeats may have
  // been lost before.
  int64_t interrupted_us_ = 0;
  int64_t looked_for_doubts_us_ = 0;
  std::atomic<bool> distributed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::billing
