// Runs a verification of the ledger on a thread and a connection of its own, so that a long one
// takes nothing from the threads that serve requests. One at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/error/error.h"
#include "common/observability/metrics.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/storage/verify.h"

namespace tollgate::billing {

class VerifyRunner {
 public:
  explicit VerifyRunner(LedgerService& ledger);
  // Stops a run that is under way.
  ~VerifyRunner();

  // How far the run is, about once a page; false ends it early.
  using Progress = std::function<bool(const VerifyReport&)>;
  using Done = std::function<void(Result<VerifyReport>)>;
  // False when a run is under way. Otherwise done is called once, on any thread.
  bool Start(std::string workspace, Progress progress, Done done);
  // Whether a run is under way.
  bool running();

 private:
  void Run(std::unique_ptr<sql::Connection> connection, const std::string& workspace,
           const Progress& progress, const Done& done);

  LedgerService& ledger_;
  prometheus::Gauge& violations_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  bool running_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
