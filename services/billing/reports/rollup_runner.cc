#include "services/billing/reports/rollup_runner.h"

#include <chrono>
#include <memory>
#include <vector>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/background_connection.h"

namespace tollgate::billing {
namespace {

prometheus::Counter& RollUpFailures() {
  static prometheus::Counter& counter = metrics::Counter(
      "tollgate_billing_rollup_failures_total",
      "Failed attempts to bring the roll-ups of usage and statements up to the newest entries.");
  return counter;
}

}  // namespace

RollUpRunner::RollUpRunner(Options options, const Clock& clock, std::function<bool()> ready)
    : options_(std::move(options)), clock_(clock), ready_(std::move(ready)) {
  (void)RollUpFailures();  // alerts see the first increase
}

void RollUpRunner::Start() {
  thread_ = std::thread([this] { Main(); });
}

void RollUpRunner::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool RollUpRunner::Stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool RollUpRunner::Sleep() {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(options_.interval_ms),
                         [this] { return stopping_; });
}

void RollUpRunner::OnCommitted(std::span<const Operation> operations) {
  const int64_t now_us = clock_.MonotonicUs();
  const std::lock_guard lock(mutex_);
  for (const Operation& operation : operations) {
    auto [waiting, fresh] = waiting_.try_emplace(std::string(WorkspaceOf(operation)));
    if (fresh) waiting->second.since_us = now_us;
    ++waiting->second.operations;
  }
}

void RollUpRunner::Main() {
  std::unique_ptr<sql::Connection> connection;
  while (Sleep()) {
    if (!ready_()) continue;
    std::string failed;
    if (auto connected = EnsureConnected(options_.sql, &connection); !connected.ok()) {
      failed = connected.error().message;
    }
    if (failed.empty()) failed = Round(*connection);
    if (failed.empty()) continue;
    RollUpFailures().Increment();
    log::Warn("roll-ups of usage and statements stay behind, retrying", {{"reason", failed}});
  }
}

std::string RollUpRunner::Round(sql::Connection& connection) {
  const int64_t now_us = clock_.MonotonicUs();
  if (swept_us_ == 0 || now_us - swept_us_ >= options_.sweep_us) {
    auto done = FoldLedger(connection, clock_.WallUs(), [this] { return Stopping(); });
    if (!done.ok()) return done.error().message;
    swept_us_ = now_us;
  }
  std::vector<std::string> due;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [workspace, waiting] : waiting_) {
      if (waiting.operations >= options_.operations ||
          now_us - waiting.since_us >= options_.longest_us) {
        due.push_back(workspace);
      }
    }
    for (const std::string& workspace : due) waiting_.erase(workspace);
  }
  std::string failed;
  for (const std::string& workspace : due) {
    for (bool more = true; more && !Stopping();) {
      auto folded = FoldEntries(connection, workspace);
      if (!folded.ok()) failed = workspace + ": " + folded.error().message;
      more = folded.ok() && *folded;
    }
  }
  return failed;
}

}  // namespace tollgate::billing
