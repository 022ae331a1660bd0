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
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/runtime/periodic_thread.h"
#include "common/sql/sql.h"
#include "services/billing/commit/busy_workspaces.h"
#include "services/billing/commit/group_commit.h"
#include "services/billing/commit/ledger_metrics.h"
#include "services/billing/commit/reloading_workspaces.h"
#include "services/billing/commit/report_standby.h"
#include "services/billing/reports/reports.h"

namespace tollgate::billing {

class LedgerService {
 public:
  struct Options {
    sql::Database::Options sql;
    Policy policy;
    GroupCommit::Options group_commit;
    int64_t expiry_interval_ms = 1000;  // between searches for expired holds
    int64_t recall_interval_ms = 250;   // between searches for recalled leases
    // PostgreSQL: uses the database's time, so that all replicas have the same. False: uses this
    // process's clock, for tests that set it.
    bool database_time = true;
    // Workspaces with more requests per second get leases; 0: none gets them.
    int64_t lease_above_per_second = 500;
    // Standby for reports; none by default.
    ReportStandby::Options reports;
  };
  using Done = GroupCommit::Done;

  LedgerService(Options options, const Clock& clock);
  ~LedgerService();

  // Adds a listener that the ledger's threads call after each commit. It must not block. Call
  // before Start.
  void OnCommitted(std::function<void(std::span<const Operation>)> listener) {
    metrics_.listeners.push_back(std::move(listener));
  }

  // Sets a listener that a thread of the ledger calls with the workspaces whose leases must end at
  // once, about every Options::recall_interval_ms while the database answers. Changes by other
  // replicas are included. It must not block. Call before Start.
  void OnRecalls(std::function<void(std::vector<std::string>)> listener) {
    on_recalls_ = std::move(listener);
  }

  // SQLite: opens the file or fails. PostgreSQL: returns at once; while the server is unreachable
  // Ready is false and a thread retries.
  Result<void> Start();
  // Refuses waiting calls at once, then waits for running ones.
  void Stop();
  bool Ready() const;

  // Never blocks. done runs on one of the ledger's threads, or at once when refused. Thread-safe.
  void Submit(std::vector<Operation> operations, Done done);
  // Runs read on a thread that may block, or refused if the ledger is not open, too many reads
  // wait, or the caller has left before its turn. Exactly one of the two is called. Ends the
  // statements of a read whose caller leaves.
  void Read(
      std::function<void(sql::Database&)> read, std::function<void(Error)> refused,
      std::function<bool()> cancelled = [] { return false; });
  // Standby on which a report may be read, or null. It may lack commits of the last
  // Options::reports.max_lag_ms. Never use it for decisions. For use within Read.
  sql::Database* report_database() { return reports_ ? reports_->Fresh() : nullptr; }
  bool has_reports() const { return reports_ != nullptr; }
  // Whether routers may have leases on the workspace's credit. Thread-safe.
  bool HasLeases(std::string_view workspace) const { return busy_.IsBusy(workspace); }
  // Kept by the payments; authorizations that lack credit tell their callers.
  ReloadingWorkspaces& reloading() { return reloading_; }
  // Whether the ledger is distributed and all its nodes answer, as far as batches show.
  // Thread-safe.
  bool NodesServe() const { return distributed_ && !group_commit_->HasNodeAside(); }
  int64_t NowUs() { return open_ ? group_commit_->NowUs() : clock_.WallUs(); }

 private:
  Result<void> Open();
  // Opens the database if Start has not, then expires holds.
  void MaintenanceMain();
  void ReaderMain();
  // Compares the clocks.
  sql::SqlResult<void> ReadClocks();
  // Reads whether batches must be limited to one ledger shard.
  sql::SqlResult<void> ReadDistribution();
  // Whether all nodes of a distributed ledger answer, as far as batches show.
  bool AllNodesAnswer() const { return !distributed_ || !group_commit_->HasNodeAside(); }
  void LookForDoubts();
  // Does the reads of one maintenance round. Returns false if the database did not answer.
  bool Probe();
  void ExpireHolds();
  // Expires leases, which gateways and routers renew while billing answers.
  void ExpireLeases();
  void FindRecalls();
  // Whether the database has answered for at least this time without interruption.
  bool HasServedFor(int64_t us) const;
  // Returns how many of these were not refused.
  int64_t Expire(std::vector<Operation> operations);
  // PostgreSQL: creates the partitions of the coming months.
  void MakePartitions();
  void DeleteIdempotencyKeys();
  // Returns false if the ledger stops meanwhile.
  bool Sleep(int64_t ms);
  // Called before each statement of the maintenance that hangs if the database does.
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
  std::unique_ptr<sql::Database> write_database_;  // the same database, with the limits of writers
  std::unique_ptr<ReportStandby> reports_;         // null: no standby
  BusyWorkspaces busy_;
  ReloadingWorkspaces reloading_;
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
  // Whether the database answered the last probe. The probe notices an outage without traffic.
  std::atomic<bool> reached_ = true;
  // Start of the running maintenance statement, in real time as in Sleep.
  static constexpr std::chrono::steady_clock::time_point kIdle{};
  std::atomic<std::chrono::steady_clock::time_point> step_begun_ = kIdle;
  // When the database last failed to answer or the process was stopped: earlier heartbeats may have
  // been lost.
  int64_t interrupted_us_ = 0;
  int64_t looked_for_doubts_us_ = 0;
  std::atomic<bool> distributed_ = false;
  std::vector<std::thread> threads_;
  std::function<void(std::vector<std::string>)> on_recalls_;
  PeriodicThread recalls_;
};

}  // namespace tollgate::billing
