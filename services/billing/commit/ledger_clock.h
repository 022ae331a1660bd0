// The ledger's time. It runs with the monotonic clock and follows a reference, the database's clock
// or, where the ledger has its database for itself, the process's wall clock. A reference that
// jumps is followed slowly: an hour's step moves the ledger by at most three minutes in an hour,
// which leaves time to repair the clock (docs/design/ledger.md 7). Thread-safe.
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

  // A reading of the database's clock, with the monotonic times around it. From the first one on,
  // the database's clock is the reference; the first one is adopted as it is.
  void OnDatabaseTime(int64_t database_us, int64_t asked_us, int64_t answered_us);

  // How far a clock is ahead of the ledger's time; negative: behind.
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
