// Keeps the roll-ups close to the newest entries while the ledger runs (ADR 0025), on its own
// thread and connection.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"
#include "services/billing/domain/operations.h"

namespace tollgate::billing {

class RollUpRunner {
 public:
  struct Options {
    sql::Database::Options sql;
    int64_t interval_ms = 1000;  // between checks for commits
    // A workspace is updated after this many committed operations, or after this time.
    int64_t operations = 200;
    int64_t longest_us = 20'000'000;
    // Interval of updating all workspaces, since other processes write entries as well.
    int64_t sweep_us = 300'000'000;
  };

  // ready: whether the ledger's tables exist.
  RollUpRunner(Options options, const Clock& clock, std::function<bool()> ready);
  ~RollUpRunner() { Stop(); }

  void Start();
  void Stop();

  // Called after each commit of this process; never blocks.
  void OnCommitted(std::span<const Operation> operations);

 private:
  struct Waiting {
    int64_t operations = 0;
    int64_t since_us = 0;
  };

  void Main();
  // Returns false if the runner stops meanwhile.
  bool Sleep();
  bool Stopping();
  // Updates the workspaces that are due. Returns an empty string, or what went wrong.
  std::string Round(sql::Connection& connection);

  const Options options_;
  const Clock& clock_;
  const std::function<bool()> ready_;
  int64_t swept_us_ = 0;  // 0: never
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::unordered_map<std::string, Waiting> waiting_;
  std::thread thread_;
};

}  // namespace tollgate::billing
