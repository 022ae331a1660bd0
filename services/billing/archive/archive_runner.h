// Archives closed months automatically, once a day, on its own thread and connection
// (docs/operations.md, "The ledger's proof").
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

class ArchiveRunner {
 public:
  struct Options {
    sql::Database::Options sql;
    std::string folder;  // must exist; the same storage for all replicas
    int months = 0;      // number of closed months to keep
    // Delay after the start; short, so that a process that is often restarted archives as well.
    int64_t first_ms = 60'000;
    int64_t interval_ms = 3600'000;  // between checks whether the day's run is due
  };

  // now_us: the ledger's time. ready: whether its tables exist.
  ArchiveRunner(Options options, std::function<int64_t()> now_us, std::function<bool()> ready);
  ~ArchiveRunner() { Stop(); }

  Result<void> Start();
  void Stop();

  // Starts the run of now_us's day, unless this or another replica has. For the thread and for
  // tests. Returns an empty string, or what went wrong.
  std::string Run(int64_t now_us);

 private:
  void Main();
  // Returns false if the runner stops meanwhile.
  bool Sleep(int64_t ms);

  const Options options_;
  const std::function<int64_t()> now_us_;
  const std::function<bool()> ready_;
  bool finished_ = false;  // the last run of this process removed all archived rows
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
