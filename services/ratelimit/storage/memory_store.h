// The limits in this process's memory, sharded by scope: one short lock makes a claim atomic.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "common/base/clock.h"
#include "services/ratelimit/storage/limiter_store.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::ratelimit {

class MemoryStore : public LimiterStore {
 public:
  // full_at_us: as for Limiter, monotonic.
  MemoryStore(const Clock& clock, int64_t slot_life_us, int64_t full_at_us = 0);

  void Acquire(Claim claim, StoreDone<AcquireOutcome> done) override;
  void Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override;
  void Renew(Claim claim, StoreDone<Limiter::Renewal> done) override;
  void Peek(Claim claim, StoreDone<PeekOutcome> done) override;
  void ReadUse(UseQuery query, StoreDone<UseAnswer> done) override;
  const std::string& id() const override { return id_; }

  std::vector<Reading> Read(const Claim& claim);
  std::vector<Limiter::Recollection> Recall(const Claim& claim);
  void Observe(const Claim& claim, const std::vector<Reading>& readings, bool charged);

  struct Totals {
    size_t slots = 0;
    size_t subjects = 0;
    int64_t expired = 0;
  };
  // Ends expired slots, drops idle subjects and counts the rest.
  Totals Sweep();

  // Save returns rates that have not recovered; Restore adopts them elapsed_us later. Slots are
  // not saved: gateways restore them when they renew.
  v1::SavedState Save();
  void Restore(const v1::SavedState& state, int64_t elapsed_us);

 private:
  static constexpr size_t kShards = 32;
  // On its own cache line, to avoid false sharing of the locks.
  struct alignas(64) Shard {
    Shard(int64_t slot_life_us, int64_t full_at_us) : limiter(slot_life_us, full_at_us) {}
    std::mutex mutex;
    Limiter limiter;
  };
  Shard& ShardOf(std::string_view scope);

  const Clock& clock_;
  const std::string id_;
  const int64_t started_us_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace tollgate::ratelimit
