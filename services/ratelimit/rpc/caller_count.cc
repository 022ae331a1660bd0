#include "services/ratelimit/rpc/caller_count.h"

namespace tollgate::ratelimit {
namespace {

constexpr size_t kIdBytes = 16;
// Sweeps at most once a second, so that a batch does not cost a pass over all callers.
constexpr int64_t kSweepUs = 1'000'000;

}  // namespace

int64_t CallerCount::Saw(const std::string& id, int64_t now_us) {
  std::lock_guard lock(mutex_);
  if (now_us - swept_us_ >= kSweepUs) {
    swept_us_ = now_us;
    std::erase_if(seen_us_, [&](const auto& seen) { return now_us - seen.second > kMemoryUs; });
  }
  if (id.size() == kIdBytes) {
    const auto found = seen_us_.find(id);
    if (found != seen_us_.end()) {
      found->second = now_us;
    } else if (seen_us_.size() < kMaxCallers) {
      seen_us_.emplace(id, now_us);
    }
  }
  return static_cast<int64_t>(seen_us_.size());
}

}  // namespace tollgate::ratelimit
