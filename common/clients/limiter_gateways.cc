#include "common/clients/limiter_gateways.h"

namespace tollgate {

LimiterGateways& LimiterGateways::Get() {
  static LimiterGateways gateways;
  return gateways;
}

void LimiterGateways::Saw(int64_t gateways, int64_t now_us) {
  if (gateways <= 0) return;
  std::lock_guard lock(mutex_);
  if (gateways < count_ && now_us - said_us_ <= kMemoryUs) return;
  count_ = gateways;
  said_us_ = now_us;
}

int64_t LimiterGateways::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace tollgate
