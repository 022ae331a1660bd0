#include "services/billing/commit/ledger_clock.h"

#include <algorithm>

namespace tollgate::billing {
namespace {

// The ledger's time follows the reference by at most 1/20 of the time that passes, far more than
// slewing by a time server needs (1/2000).
constexpr int64_t kFollowPart = 20;
// Maximum time that a pause between two uses counts for.
constexpr int64_t kMaxGapUs = 10'000'000;
// If the answer takes longer, it is too inaccurate to use.
constexpr int64_t kMaxAnswerUs = 500'000;

}  // namespace

int64_t LedgerClock::NowUs() {
  const std::lock_guard lock(mutex_);
  return Advance();
}

int64_t LedgerClock::Advance() {
  const int64_t monotonic_us = clock_.MonotonicUs();
  const int64_t reference_us = database_offset_us_.value_or(clock_.WallUs() - monotonic_us);
  if (!offset_us_) {
    offset_us_ = reference_us;
    followed_us_ = monotonic_us;
  }
  // Fractions of a microsecond carry over to the next call.
  const int64_t most_us = std::min(monotonic_us - followed_us_, kMaxGapUs) / kFollowPart;
  if (most_us > 0) {
    *offset_us_ += std::clamp(reference_us - *offset_us_, -most_us, most_us);
    followed_us_ = monotonic_us;
  }
  last_now_us_ = std::max(last_now_us_, monotonic_us + *offset_us_);
  return last_now_us_;
}

void LedgerClock::OnDatabaseTime(int64_t database_us, int64_t asked_us, int64_t answered_us) {
  const std::lock_guard lock(mutex_);
  const bool first = !database_offset_us_.has_value();
  if (!first && answered_us - asked_us > kMaxAnswerUs) return;
  database_offset_us_ = database_us - (asked_us + (answered_us - asked_us) / 2);
  if (first) offset_us_ = database_offset_us_;
  Advance();
}

LedgerClock::Ahead LedgerClock::ahead() {
  const std::lock_guard lock(mutex_);
  Advance();
  Ahead ahead;
  ahead.process_us = clock_.WallUs() - clock_.MonotonicUs() - *offset_us_;
  if (database_offset_us_) ahead.database_us = *database_offset_us_ - *offset_us_;
  return ahead;
}

}  // namespace tollgate::billing
