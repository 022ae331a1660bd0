// The ledger's time. It runs with the monotonic clock and follows a reference: the database's
// clock, or the process's wall clock if the ledger is the only user of its database. After a jump
// of the reference it follows slowly: a step of an hour moves the ledger by at most three minutes
// per hour, which leaves time to repair the clock (docs/design/ledger.md 7). Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "common/base/clock.h"

namespace tollgate::billing {

class LedgerClock {
 public:
  explicit LedgerClock(const Clock& clock) : clock_(clock) {}

  // Never decreases.
  int64_t NowUs();

  // Takes a reading of the database's clock, with the monotonic times around it. After the first
  // reading, which is adopted as it is, the database's clock is the reference.
  void OnDatabaseTime(int64_t database_us, int64_t asked_us, int64_t answered_us);

  // How far each clock is ahead of the ledger's time; negative: behind.
  struct Ahead {
    int64_t process_us = 0;
    std::optional<int64_t> database_us;
  };
  Ahead ahead();

 private:
  int64_t Advance();  // requires the lock

  const Clock& clock_;
  std::mutex mutex_;
  // Ledger time minus monotonic time; empty until the first use.
  std::optional<int64_t> offset_us_;
  std::optional<int64_t> database_offset_us_;
  int64_t followed_us_ = 0;  // monotonic time up to which the offset has followed the reference
  int64_t last_now_us_ = 0;
};

}  // namespace tollgate::billing
