// A standby of the ledger's PostgreSQL that answers reports while its lag is small (ADR 0038).
// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

class ReportStandby {
 public:
  struct Options {
    sql::Database::Options sql;  // of the standby; an empty URL: no standby
    // Maximum lag at which the standby answers reports.
    int64_t max_lag_ms = 10'000;
    int64_t interval_ms = 1000;  // between readings of the lag
  };

  // primary: the server that the standby replicates. The clock must outlive this object.
  ReportStandby(Options options, sql::Database::Options primary, const Clock& clock);
  ~ReportStandby();

  Result<void> Start();
  void Stop();
  // Returns the standby if it has everything committed until max_lag_ms ago; else null.
  sql::Database* Fresh();

 private:
  struct Written {
    int64_t at_us = 0;  // everything committed until then is
    int64_t end = 0;    // within the log's first end bytes
  };
  void Main();
  void Look();
  // Reads up to where the log can be read on this server, in bytes.
  static sql::SqlResult<int64_t> ReadLogEnd(sql::Database& database);

  const Options options_;
  const sql::Database::Options primary_options_;
  const Clock& clock_;
  std::unique_ptr<sql::Database> reports_;
  // Used to read the lag, with shorter timeouts than for reports.
  std::unique_ptr<sql::Database> primary_, standby_;
  // Time (monotonic) up to which commits are readable on the standby; 0: unknown.
  std::atomic<int64_t> as_of_us_ = 0;
  std::deque<Written> written_;
  bool was_fresh_ = true;  // for log messages
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
