// Alerts of one billing process: database, engine and threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/runtime/thread_pool.h"
#include "services/billing/alerts/alert_admin.h"
#include "services/billing/commit/ledger_service.h"

namespace tollgate::billing::alerts {

struct AlertsOptions {
  sql::Database::Options sql;
  std::string smtp_password_file;
  // Empty: secrets of webhooks are not sealed.
  std::string seal_key_file;
  int64_t sweep_us = 30'000'000;
  AlertEngine::Options engine;
};

class Alerts {
 public:
  // ledger must outlive the object and must not have been started.
  Alerts(AlertsOptions options, const Clock& clock, LedgerService& ledger);
  ~Alerts();

  // Checks the settings, opens the database (PostgreSQL: in the background) and starts the threads.
  Result<void> Start();
  void Stop();

  // Whether calls are accepted: the database is open and alerts are not stopping.
  bool open() const { return open_ && !closing_; }
  AlertAdmin& admin() { return *admin_; }
  AlertEngine& engine() { return *engine_; }
  // Threads for calls that block.
  ThreadPool& pool() { return pool_; }

 private:
  Result<void> CheckSettings();
  bool Migrate();
  void CheckerMain();
  void DelivererMain();
  void Sweep();
  void Maintain();
  void OnCommitted(std::span<const Operation> operations);
  // Returns false when stopping.
  bool Sleep();
  bool Stopping();

  AlertsOptions options_;
  std::string seal_key_;
  const Clock& clock_;
  AlertMetrics metrics_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<AlertStore> store_;
  std::unique_ptr<AlertEngine> engine_;
  std::unique_ptr<AlertAdmin> admin_;
  ThreadPool pool_{2, 64, "alerts"};

  std::atomic<bool> open_ = false;
  std::atomic<bool> closing_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int64_t pruned_us_ = 0;
  std::unordered_set<std::string> watched_;  // as of the last sweep
  std::unordered_set<std::string> spent_;    // watched workspaces that changed since the last check
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::billing::alerts
