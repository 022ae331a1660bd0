#include "services/ratelimit/domain/gcra.h"

#include <algorithm>

namespace tollgate::ratelimit {

__extension__ typedef __int128 Wide;

int64_t CostNs(int64_t n, int64_t limit) {
  if (n <= 0) return 0;
  return static_cast<int64_t>(std::min<Wide>(Wide{n} * kWindowNs / limit, kMaxDebtNs));
}

int64_t WaitNs(int64_t used_ns, int64_t cost_ns) {
  return std::max<int64_t>(used_ns + std::min(cost_ns, kWindowNs) - kWindowNs, 0);
}

int64_t ChargedNs(int64_t used_ns, int64_t cost_ns) {
  return std::min(used_ns + cost_ns, kMaxDebtNs);
}

int64_t RemainingOf(int64_t used_ns, int64_t limit) {
  const int64_t free = std::max<int64_t>(kWindowNs - used_ns, 0);
  return static_cast<int64_t>(Wide{free} * limit / kWindowNs);
}

int64_t Bucket::WaitNs(int64_t cost_ns, int64_t now_ns) const {
  return ratelimit::WaitNs(ResetNs(now_ns), cost_ns);
}

void Bucket::Charge(int64_t cost_ns, int64_t now_ns) {
  full_at_ns_ = now_ns + ChargedNs(ResetNs(now_ns), cost_ns);
}

void Bucket::Refund(int64_t cost_ns, int64_t now_ns) {
  full_at_ns_ = std::max(full_at_ns_ - cost_ns, now_ns);
}

int64_t Bucket::Remaining(int64_t limit, int64_t now_ns) const {
  return RemainingOf(ResetNs(now_ns), limit);
}

int64_t Bucket::ResetNs(int64_t now_ns) const { return std::max<int64_t>(full_at_ns_ - now_ns, 0); }

}  // namespace tollgate::ratelimit
