// Archives closed months by itself, once a day, on a thread and a connection of its own
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
    std::string folder;  // it must exist; the same storage for all replicas
    int months = 0;      // how many closed months stay
    // After the start, so that a process that never lives for an hour archives, too.
    int64_t first_ms = 60'000;
    int64_t interval_ms = 3600'000;  // between looks whether a day's run is due
  };

  // now_us: the ledger's time. ready: whether its tables are there.
  ArchiveRunner(Options options, std::function<int64_t()> now_us, std::function<bool()> ready);
  ~ArchiveRunner() { Stop(); }

  Result<void> Start();
  void Stop();

  // The run of the day of now_us, unless this or another replica has begun it. For the thread and
  // for tests. Empty, or what went wrong.
  std::string Run(int64_t now_us);

 private:
  void Main();
  // False when the runner stops meanwhile.
  bool Sleep(int64_t ms);

  const Options options_;
  const std::function<int64_t()> now_us_;
  const std::function<bool()> ready_;
  bool finished_ = false;  // the last run of this process removed all that is archived
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
