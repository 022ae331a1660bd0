// The generic cell rate algorithm: one number per limit and subject. spec: reliability.md
// section 2.
//
// The burst of a limit is one minute's worth, so the tolerance is the same window for every limit
// and a bucket needs no unit of its own: it holds the time at which it will be whole again. When a
// limit is changed, the used share of the bucket stays. Time is kept in nanoseconds: with
// microseconds, rounding would bend limits of a million a minute by per cents.
#pragma once

#include <cstdint>

namespace tollgate::ratelimit {

inline constexpr int64_t kWindowNs = 60'000'000'000;
// However much more than its estimate a request uses, its subject is blocked no longer than this.
inline constexpr int64_t kMaxDebtNs = 2 * kWindowNs;

// What n units cost at this many units a minute (more than 0), at most kMaxDebtNs. Rounded down:
// the error is below a nanosecond per call, and so a burst admits exactly `limit` single units.
int64_t CostNs(int64_t n, int64_t limit);

class Bucket {
 public:
  // How long until this cost is admitted; 0 when it is now. A cost beyond the whole window is
  // admitted when the bucket is whole, else it never could be.
  int64_t WaitNs(int64_t cost_ns, int64_t now_ns) const;
  // Takes, whether admitted or not: the result may be debt.
  void Charge(int64_t cost_ns, int64_t now_ns);
  // Gives back; never to more than whole.
  void Refund(int64_t cost_ns, int64_t now_ns);

  // Units that would be admitted now, at this limit.
  int64_t Remaining(int64_t limit, int64_t now_ns) const;
  // How long until the bucket is whole.
  int64_t ResetNs(int64_t now_ns) const;
  bool Whole(int64_t now_ns) const { return whole_at_ns_ <= now_ns; }

 private:
  // The "theoretical arrival time" of the literature.
  int64_t whole_at_ns_ = 0;
};

}  // namespace tollgate::ratelimit
