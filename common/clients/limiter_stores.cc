#include "common/clients/limiter_stores.h"

#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate {
namespace {

// How long an id is remembered, and a split reported after it was last seen.
constexpr int64_t kMemoryUs = 60'000'000;
constexpr int64_t kLogIntervalUs = 10'000'000;

void Report(size_t stores) {
  static prometheus::Gauge& gauge =
      metrics::Gauge("tollgate_gateway_limiter_stores",
                     "Rate limiters with separate states that this process uses; above 1, each "
                     "admits every limit in full.");
  gauge.Set(static_cast<double>(stores));
}

}  // namespace

LimiterStores& LimiterStores::Get() {
  static LimiterStores stores;
  return stores;
}

int LimiterStores::Saw(const std::string& id, int64_t now_us) {
  std::lock_guard lock(mutex_);
  if (id.empty()) return 1;
  if (id == last_ && split_us_ == 0) {  // the common case
    seen_us_[id] = now_us;
    return 1;
  }
  std::erase_if(seen_us_, [&](const auto& seen) { return now_us - seen.second > kMemoryUs; });
  const bool back = id != last_ && seen_us_.contains(id);
  seen_us_[id] = now_us;
  last_ = id;
  if (back) {
    if (split_us_ == 0 || now_us - split_us_ > kLogIntervalUs) {
      log::Error(
          "several rate limiters without a shared store are in use, and each admits every limit in "
          "full: run one, or set ratelimit.redis_url for all of them",
          {{"limiters", seen_us_.size()}});
      split_us_ = now_us;
    }
  } else if (split_us_ != 0 && now_us - split_us_ > kMemoryUs) {
    split_us_ = 0;
  }
  const size_t stores = split_us_ == 0 ? 1 : seen_us_.size();
  Report(stores);
  return static_cast<int>(stores);
}

}  // namespace tollgate
