#include "services/billing/rpc/verify_runner.h"

#include <utility>

namespace tollgate::billing {

VerifyRunner::VerifyRunner(LedgerService& ledger)
    : ledger_(ledger),
      violations_(metrics::Gauge("tollgate_billing_verify_violations",
                                 "What the last verification through this process found.")) {}

VerifyRunner::~VerifyRunner() {
  stopping_ = true;
  std::thread last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

bool VerifyRunner::running() {
  const std::lock_guard lock(mutex_);
  return running_;
}

bool VerifyRunner::Start(std::string workspace, Progress progress, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (running_) return false;
    running_ = true;
  }
  const auto finish = [this, done](Result<VerifyReport> result) {
    {
      const std::lock_guard lock(mutex_);
      running_ = false;
    }
    done(std::move(result));
  };
  // The reader thread only opens the connection.
  ledger_.Read(
      [this, workspace = std::move(workspace), progress = std::move(progress),
       finish](sql::Database& database) {
        auto connection = database.Connect();
        if (!connection.ok()) return finish(Fail{sql::ToError(connection.error())});
        const std::lock_guard lock(mutex_);
        // The previous thread has ended or is about to return.
        if (thread_.joinable()) thread_.join();
        thread_ = std::thread(
            [this, opened = std::move(*connection), workspace, progress, finish]() mutable {
              Run(std::move(opened), workspace, progress, finish);
            });
      },
      [finish](Error refused) { finish(Fail{std::move(refused)}); });
  return true;
}

void VerifyRunner::Run(std::unique_ptr<sql::Connection> connection, const std::string& workspace,
                       const Progress& progress, const Done& done) {
  VerifyOptions options;
  options.workspace = workspace;
  options.overdue_holds = true;
  options.progress = [&](const VerifyReport& report, const std::string&) {
    return !stopping_ && progress(report);
  };
  auto report = VerifyLedger(*connection, options);
  connection.reset();
  if (!report.ok()) return done(Fail{sql::ToError(report.error())});
  // Only a complete verification may clear earlier findings.
  if (!report->violations.empty() || (workspace.empty() && !report->stopped)) {
    violations_.Set(static_cast<double>(report->violations.size()));
  }
  done(std::move(*report));
}

}  // namespace tollgate::billing
