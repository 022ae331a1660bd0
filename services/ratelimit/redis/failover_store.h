// The limits in Redis while it answers, and a share of them in this process while it does not:
// never open, never all closed (docs/design/limits.md 8).
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
  std::string redis_id;  // RedisStore's
  int64_t lease_us = 9'000'000;
  // Of each rate limit, that all processes together grant without Redis.
  int64_t share_percent = 120;
  // Processes among which it is divided; 0: as many as were last counted in Redis.
  int64_t replicas = 0;
};

class FailoverStore : public LimiterStore {
 public:
  FailoverStore(RedisClient& client, const Clock& clock, const FailoverOptions& options);

  // By Redis if it answers in time. Else the rates are taken from the local share, and the outcome
  // has local_share: concurrency was not checked, since only the caller knows what it runs.
  void Acquire(Claim claim, StoreDone<AcquireOutcome> done) override;
  // A lease that Redis does not know may have been granted locally. Fails while Redis is
  // unreachable and the lease is not a local one.
  void Release(std::string scope, const Id& lease, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override;
  void Renew(Claim claim, StoreDone<Limiter::Renewal> done) override;
  void Peek(Claim claim, StoreDone<PeekOutcome> done) override;
  void ReadUse(UseQuery query, StoreDone<UseAnswer> done) override;
  const std::string& id() const override { return redis_.id(); }

  // Counts the processes. To be called about every second.
  void Beat();
  // Says that this process ends. Blocks for at most 200 ms.
  void Leave();
  // Processes among which the limits are divided while Redis is unreachable.
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
  // The share. While Redis answers, it follows the rates that Redis reports, so that it starts with
  // what is left and not with a burst of its own.
  MemoryStore local_;
  std::atomic<int64_t> counted_{0};  // processes in Redis; 0: not counted yet
  std::atomic<int64_t> logged_us_{0};
  prometheus::Counter& local_decisions_;
  prometheus::Gauge& unsettled_;
  prometheus::Gauge& up_;
};

}  // namespace tollgate::ratelimit
