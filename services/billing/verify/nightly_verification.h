// Verifies the whole ledger every night in a process of its own, with its checkpoints and archive
// (docs/operations.md, "The ledger's proof").
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/error/error.h"
#include "common/observability/metrics.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

class NightlyVerification {
 public:
  struct Options {
    sql::Database::Options sql;
    // The program and its first arguments; empty: tollgate-billing next to this program, or else on
    // the PATH. The options of the verification follow.
    std::vector<std::string> program;
    std::vector<std::string> arguments;
    int64_t first_ms = 300'000;    // after the start
    int64_t interval_ms = 60'000;  // between looks at what has run
  };

  // now_us: the ledger's time. ready: whether its tables exist.
  NightlyVerification(Options options, std::function<int64_t()> now_us,
                      std::function<bool()> ready);
  ~NightlyVerification() { Stop(); }

  Result<void> Start();
  // Ends a verification that runs; another replica or the next start begins it again.
  void Stop();

  // Verifies if this night's verification is due, and updates the metrics. For the thread and for
  // tests. Returns an empty string, or what went wrong.
  std::string Round(int64_t now_us);

 private:
  void Main();
  // Returns false if the runner stops meanwhile.
  bool Sleep(int64_t ms);
  std::string Verify(int64_t now_us);
  std::string UpdateMetrics(int64_t now_us);

  const Options options_;
  const std::function<int64_t()> now_us_;
  const std::function<bool()> ready_;
  prometheus::Gauge& age_seconds_;
  prometheus::Gauge& violations_;
  const int64_t started_us_;
  std::unique_ptr<sql::Database> database_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
