// The limits in Redis, shared by any number of ratelimit processes: one script per claim, on
// Redis's clock.
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "services/ratelimit/redis/redis_client.h"
#include "services/ratelimit/storage/limiter_store.h"

namespace tollgate::ratelimit {

// Rates that the caller remembers for the claim's subjects, one each or none, in case Redis has
// lost them. A hint counts if Redis knows nothing of the subject, or if the caller granted the use
// itself and it is higher.
using Hints = std::vector<Limiter::Recollection>;

class RedisStore : public LimiterStore {
 public:
  struct Options {
    // Longest time during which no process could reach Redis and Redis still has every slot. After
    // a longer time, a loss of data or a change of the server, no slots are given until gateways
    // have renewed theirs. 0: slots are always given; for tests.
    int64_t gap_us = 0;
    const Clock* test_clock = nullptr;  // replaces Redis's clock
  };
  // client must outlive the store.
  RedisStore(RedisClient& client, std::string id, int64_t slot_life_us, const Options& options);
  RedisStore(RedisClient& client, std::string id, int64_t slot_life_us)
      : RedisStore(client, std::move(id), slot_life_us, Options()) {}

  void Acquire(Claim claim, StoreDone<AcquireOutcome> done) override;
  void Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override;
  void Renew(Claim claim, StoreDone<Limiter::Renewal> done) override;
  void Peek(Claim claim, StoreDone<PeekOutcome> done) override;
  void ReadUse(UseQuery query, StoreDone<UseAnswer> done) override;
  const std::string& id() const override { return id_; }

  // The hash tag of a scope's keys.
  static std::string TagOf(const std::string& scope);

  // As Acquire, with hints. The readings are from before the charge.
  struct Answer {
    AcquireOutcome outcome;
    std::vector<Reading> readings;
    bool held = false;
  };
  void AcquireWith(std::shared_ptr<const Claim> claim, const Hints& hints, StoreDone<Answer> done);
  // Call every second: tells every part of Redis that slots can be renewed. Returns how long no
  // slots are given, in µs, the longest of all parts.
  void Watch(StoreDone<int64_t> done);
  // Reports that this process is alive for life_us (0: that it leaves). Returns the number of live
  // processes.
  void Present(const std::string& process, int64_t life_us, StoreDone<int64_t> done);

 private:
  // Arguments that every script starts with.
  std::vector<std::string> Head(const std::string& scope) const;
  std::vector<std::string> Arguments(const Claim& claim, const Hints& hints, bool take) const;

  RedisClient& client_;
  const std::string id_;
  const int64_t slot_life_us_;
  const Options options_;
};

}  // namespace tollgate::ratelimit
