// Runs one verification of the ledger at a time, on its own thread and connection, so that a long
// one does not occupy the threads that serve requests.
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
#include "services/billing/verify/verify.h"

namespace tollgate::billing {

class VerifyRunner {
 public:
  explicit VerifyRunner(LedgerService& ledger);
  // Stops a running verification.
  ~VerifyRunner();

  // Gets the progress of the run about once per page; returning false ends the run.
  using Progress = std::function<bool(const VerifyReport&)>;
  using Done = std::function<void(Result<VerifyReport>)>;
  // Returns false if a run is under way. Otherwise calls done once, on any thread.
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
