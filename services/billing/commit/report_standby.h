// A standby of the ledger's PostgreSQL, which answers reports while it is close behind (ADR 0038).
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
    sql::Database::Options sql;  // of the standby; an empty URL: there is none
    // A standby that is further behind is not asked.
    int64_t max_lag_ms = 10'000;
    int64_t interval_ms = 1000;  // between looks how far behind it is
  };

  // primary: whose standby it is. The clock outlives this object.
  ReportStandby(Options options, sql::Database::Options primary, const Clock& clock);
  ~ReportStandby();

  Result<void> Start();
  void Stop();
  // The standby while everything that was committed max_lag_ms ago can be read there; else null.
  sql::Database* Fresh();

 private:
  struct Written {
    int64_t at_us = 0;  // everything committed until then is
    int64_t end = 0;    // within so many bytes of the log
  };
  void Main();
  void Look();
  // How much of the log can be read there, in bytes.
  static sql::SqlResult<int64_t> ReadLogEnd(sql::Database& database);

  const Options options_;
  const sql::Database::Options primary_options_;
  const Clock& clock_;
  std::unique_ptr<sql::Database> reports_;
  // For the looks, which give up sooner than a report.
  std::unique_ptr<sql::Database> primary_, standby_;
  // What was committed until then can be read on the standby (monotonic); 0: nothing is known.
  std::atomic<int64_t> as_of_us_ = 0;
  std::deque<Written> written_;
  bool was_fresh_ = true;  // for the log
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tollgate::billing
