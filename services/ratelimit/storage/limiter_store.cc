#include "services/ratelimit/storage/limiter_store.h"

#include <functional>

namespace tollgate::ratelimit {

LimiterStore::LimiterStore(const Clock& clock, int64_t lease_us) : clock_(clock) {
  for (size_t i = 0; i < kShards; ++i) shards_.push_back(std::make_unique<Shard>(lease_us));
}

LimiterStore::Shard& LimiterStore::ShardOf(std::string_view workspace_id) {
  // The upper bits: the hash table inside the shard uses the lower ones.
  return *shards_[(std::hash<std::string_view>()(workspace_id) >> 40) % kShards];
}

AcquireOutcome LimiterStore::Acquire(const AcquireArgs& args) {
  Shard& shard = ShardOf(args.workspace_id);
  std::lock_guard lock(shard.mutex);
  // Read under the lock, so that time never goes back within a shard.
  return shard.limiter.Acquire(args, clock_.MonotonicUs());
}

bool LimiterStore::Release(std::string_view workspace_id, const Id& lease, int64_t actual_tokens,
                           bool refund) {
  Shard& shard = ShardOf(workspace_id);
  std::lock_guard lock(shard.mutex);
  return shard.limiter.Release(workspace_id, lease, actual_tokens, refund, clock_.MonotonicUs());
}

size_t LimiterStore::Renew(std::span<const Id> leases) {
  size_t renewed = 0;
  for (const auto& shard : shards_) {
    if (renewed == leases.size()) break;
    std::lock_guard lock(shard->mutex);
    const int64_t now_us = clock_.MonotonicUs();
    for (const Id& lease : leases) renewed += shard->limiter.Renew(lease, now_us) ? 1 : 0;
  }
  return renewed;
}

PeekOutcome LimiterStore::Peek(std::string_view workspace_id, std::string_view key_id,
                               const Limits& key_limits, const Limits& workspace_limits) {
  Shard& shard = ShardOf(workspace_id);
  std::lock_guard lock(shard.mutex);
  return shard.limiter.Peek(workspace_id, key_id, key_limits, workspace_limits,
                            clock_.MonotonicUs());
}

LimiterStore::Totals LimiterStore::Sweep() {
  Totals totals;
  for (const auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    shard->limiter.Sweep(clock_.MonotonicUs());
    totals.leases += shard->limiter.leases();
    totals.subjects += shard->limiter.subjects();
    totals.expired += shard->limiter.expired();
  }
  return totals;
}

}  // namespace tollgate::ratelimit
