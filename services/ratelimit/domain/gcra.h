// The generic cell rate algorithm (GCRA): one number per limit and subject. See
// docs/design/limits.md 1.
//
// The burst of a limit is what it allows in one minute, so all limits share one window. A bucket
// does not depend on its limit: it holds the time at which it will be full again, and when the
// limit changes, the used share of the bucket stays the same. Time is in nanoseconds, because
// rounding to microseconds would distort limits of a million a minute by several per cent.
#pragma once

#include <cstdint>

namespace tollgate::ratelimit {

inline constexpr int64_t kWindowNs = 60'000'000'000;
// A request may use more than its estimate; the debt blocks its subject at most for this time.
inline constexpr int64_t kMaxDebtNs = 2 * kWindowNs;

// Cost of n units at `limit` units a minute (above 0), at most kMaxDebtNs. Rounded down, so that a
// burst admits exactly `limit` single units; the error is less than a nanosecond per call.
int64_t CostNs(int64_t n, int64_t limit);

// The functions below work on used_ns, the time until the bucket is full again. WaitNs: time until
// this cost is admitted; 0: now. A cost above the window is admitted when the bucket is full,
// because otherwise it never could be.
int64_t WaitNs(int64_t used_ns, int64_t cost_ns);
// used_ns after a charge. The bucket may go into debt.
int64_t ChargedNs(int64_t used_ns, int64_t cost_ns);
// Units that would be admitted now.
int64_t RemainingOf(int64_t used_ns, int64_t limit);

class Bucket {
 public:
  Bucket() = default;
  // A bucket that will be full at this time.
  explicit Bucket(int64_t full_at_ns) : full_at_ns_(full_at_ns) {}
  int64_t WaitNs(int64_t cost_ns, int64_t now_ns) const;
  // Takes the cost without a check. The bucket may go into debt.
  void Charge(int64_t cost_ns, int64_t now_ns);
  // Returns the cost, at most until the bucket is full.
  void Refund(int64_t cost_ns, int64_t now_ns);

  // Units that would be admitted now.
  int64_t Remaining(int64_t limit, int64_t now_ns) const;
  // Time until the bucket is full.
  int64_t ResetNs(int64_t now_ns) const;
  bool Full(int64_t now_ns) const { return full_at_ns_ <= now_ns; }

 private:
  // The "theoretical arrival time" of the GCRA literature.
  int64_t full_at_ns_ = 0;
};

}  // namespace tollgate::ratelimit
