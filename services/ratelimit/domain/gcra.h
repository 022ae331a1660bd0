// The generic cell rate algorithm (GCRA): one number per limit and subject. See
// docs/design/limits.md 1.
//
// The burst of a limit is one minute's worth, so all limits share one window, and a bucket is
// independent of its limit: it holds the time at which it will be full again. When a limit changes,
// the used share of the bucket stays. Time is in nanoseconds: with microseconds, rounding would
// distort limits of a million a minute by several per cent.
#pragma once

#include <cstdint>

namespace tollgate::ratelimit {

inline constexpr int64_t kWindowNs = 60'000'000'000;
// A request may use more than its estimate; the resulting debt blocks its subject no longer than
// this.
inline constexpr int64_t kMaxDebtNs = 2 * kWindowNs;

// The cost of n units at `limit` units a minute (above 0), at most kMaxDebtNs. Rounded down, so
// that a burst admits exactly `limit` single units; the error is below a nanosecond per call.
int64_t CostNs(int64_t n, int64_t limit);

// The rules, on what is used: the time until the bucket is full again.
// The time until this cost is admitted; 0: now. A cost above the window is admitted when the bucket
// is full: otherwise it never could be.
int64_t WaitNs(int64_t used_ns, int64_t cost_ns);
// What is used after a charge. The bucket may go into debt.
int64_t ChargedNs(int64_t used_ns, int64_t cost_ns);
// The units that would be admitted now.
int64_t RemainingOf(int64_t used_ns, int64_t limit);

class Bucket {
 public:
  Bucket() = default;
  // One that will be full at this time.
  explicit Bucket(int64_t full_at_ns) : full_at_ns_(full_at_ns) {}
  int64_t WaitNs(int64_t cost_ns, int64_t now_ns) const;
  // Takes the cost without a check. The bucket may go into debt.
  void Charge(int64_t cost_ns, int64_t now_ns);
  // Returns the cost. The bucket never becomes more than full.
  void Refund(int64_t cost_ns, int64_t now_ns);

  // The units that would be admitted now.
  int64_t Remaining(int64_t limit, int64_t now_ns) const;
  // The time until the bucket is full.
  int64_t ResetNs(int64_t now_ns) const;
  bool Full(int64_t now_ns) const { return full_at_ns_ <= now_ns; }

 private:
  // The "theoretical arrival time" of the GCRA literature.
  int64_t full_at_ns_ = 0;
};

}  // namespace tollgate::ratelimit
