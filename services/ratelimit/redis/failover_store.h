// Keeps the limits in Redis while it answers, and a share of them in this process while it does
// not, so that an outage neither admits nor refuses everything (docs/design/limits.md 8).
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "services/ratelimit/redis/redis_store.h"
#include "services/ratelimit/storage/memory_store.h"

namespace prometheus {
class Counter;
class Gauge;
}  // namespace prometheus

namespace tollgate::ratelimit {

struct FailoverOptions {
  std::string redis_id;  // id of the RedisStore
  int64_t slot_life_us = 9'000'000;
  // Percentage of each rate limit that all processes together grant without Redis.
  int64_t share_percent = 120;
  // Processes that divide this percentage; 0: as many as were last counted in Redis.
  int64_t replicas = 0;
};

class FailoverStore : public LimiterStore {
 public:
  FailoverStore(RedisClient& client, const Clock& clock, const FailoverOptions& options);

  // Decided by Redis if it answers in time. Otherwise rates are taken from the local share and the
  // outcome has local_share. Concurrency is then not checked: only the caller knows its running
  // requests.
  void Acquire(Claim claim, StoreDone<AcquireOutcome> done) override;
  // A slot that Redis does not know may have been granted locally. Fails if Redis is unreachable
  // and the slot is not local.
  void Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override;
  void Renew(Claim claim, StoreDone<Limiter::Renewal> done) override;
  void Peek(Claim claim, StoreDone<PeekOutcome> done) override;
  void ReadUse(UseQuery query, StoreDone<UseAnswer> done) override;
  const std::string& id() const override { return redis_.id(); }

  // Reports this process to Redis and counts the processes. Call it about once a second.
  void Beat();
  // Reports that this process leaves. Blocks for at most 200 ms.
  void Leave();
  // Number of processes that divide the limits while Redis is unreachable.
  int64_t replicas() const;
  // Whether Redis has answered since the process started.
  bool counted() const { return counted_ > 0; }
  // This process's share of a rate limit.
  int64_t Share(int64_t limit) const;
  MemoryStore::Totals Sweep() { return local_.Sweep(); }

 private:
  void AcquireLocally(const Claim& claim, const StoreError& reason,
                      const StoreDone<AcquireOutcome>& done);
  void OnFailure(const StoreError& reason);

  const Clock& clock_;
  const FailoverOptions options_;
  const std::string process_;
  RedisStore redis_;
  // The local share. While Redis answers, it follows the rates that Redis reports, so that it
  // starts with what is left and not with a new burst.
  MemoryStore local_;
  std::atomic<int64_t> counted_{0};  // processes in Redis; 0: not counted yet
  std::atomic<int64_t> logged_us_{0};
  prometheus::Counter& local_decisions_;
  prometheus::Gauge& unsettled_;
  prometheus::Gauge& up_;
};

}  // namespace tollgate::ratelimit
