// The limits of all workspaces, for any number of threads. Everything of one workspace lives in one
// shard, so one short lock makes an Acquire atomic over the limits of key and workspace.
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
  // How many of these leases are held. Takes every shard's lock once, however many ids there are.
  size_t Renew(std::span<const Id> leases);
  PeekOutcome Peek(std::string_view workspace_id, std::string_view key_id, const Limits& key_limits,
                   const Limits& workspace_limits);

  struct Totals {
    size_t leases = 0;
    size_t subjects = 0;
    int64_t expired = 0;
  };
  // Ends what has expired, forgets what is idle, and counts what is left.
  Totals Sweep();

 private:
  static constexpr size_t kShards = 32;
  // On a cache line of its own: neighbours' locks must not slow each other down.
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
