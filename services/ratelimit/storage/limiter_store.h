// The in-memory store of all limits: thread-safe, sharded by workspace. A workspace and its keys
// are in one shard, so a single lock makes Acquire atomic over the limits of both.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "services/ratelimit/domain/limiter.h"

namespace tollgate::ratelimit {

class LimiterStore {
 public:
  LimiterStore(const Clock& clock, int64_t lease_us);

  AcquireOutcome Acquire(const AcquireArgs& args);
  // False: there is no such lease in this workspace.
  bool Release(std::string_view workspace_id, const Id& lease, int64_t actual_tokens, bool refund);
  // Returns how many of these leases are held. Lease ids do not name their shard: this locks each
  // shard once.
  size_t Renew(std::span<const Id> leases);
  PeekOutcome Peek(std::string_view workspace_id, std::string_view key_id, const Limits& key_limits,
                   const Limits& workspace_limits);

  struct Totals {
    size_t leases = 0;
    size_t subjects = 0;
    int64_t expired = 0;
  };
  // Ends expired leases, drops idle subjects and counts the rest.
  Totals Sweep();

 private:
  static constexpr size_t kShards = 32;
  // On its own cache line, against false sharing of the locks.
  struct alignas(64) Shard {
    explicit Shard(int64_t lease_us) : limiter(lease_us) {}
    std::mutex mutex;
    Limiter limiter;
  };
  Shard& ShardOf(std::string_view workspace_id);

  const Clock& clock_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace tollgate::ratelimit
