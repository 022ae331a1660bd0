// The limits in Redis, shared by any number of ratelimit processes: one script per claim, by
// Redis's clock.
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "services/ratelimit/redis/redis_client.h"
#include "services/ratelimit/storage/limiter_store.h"

namespace tollgate::ratelimit {

// What the caller remembers of the claim's subjects, one each or none, for a Redis that has lost
// it. It counts where Redis knows nothing, and what the caller granted itself also where it is
// more.
using Hints = std::vector<Limiter::Recollection>;

class RedisStore : public LimiterStore {
 public:
  struct Options {
    // How long Redis may have been out of reach for all, so that it still has every lease: after a
    // longer time, after a loss of its data and with another server no slots are given until
    // gateways have renewed their leases. 0: they are given at once; for tests.
    int64_t gap_us = 0;
    const Clock* test_clock = nullptr;  // instead of Redis's clock
  };
  // client must outlive the store.
  RedisStore(RedisClient& client, std::string id, int64_t lease_us, const Options& options);
  RedisStore(RedisClient& client, std::string id, int64_t lease_us)
      : RedisStore(client, std::move(id), lease_us, Options()) {}

  void Acquire(Claim claim, StoreDone<AcquireOutcome> done) override;
  void Release(std::string scope, const Id& lease, int64_t actual_tokens, bool refund,
               StoreDone<bool> done) override;
  void Renew(Claim claim, StoreDone<Limiter::Renewal> done) override;
  void Peek(Claim claim, StoreDone<PeekOutcome> done) override;
  void ReadUse(UseQuery query, StoreDone<UseAnswer> done) override;
  const std::string& id() const override { return id_; }

  // The hash tag of a scope's keys.
  static std::string TagOf(const std::string& scope);

  // Acquire with hints, and with what Redis read before it charged.
  struct Answer {
    AcquireOutcome outcome;
    std::vector<Reading> readings;
    bool held = false;
  };
  void AcquireWith(std::shared_ptr<const Claim> claim, const Hints& hints, StoreDone<Answer> done);
  // To be called every second: says in every part of Redis that leases can be renewed. Answers with
  // how long no slots are given, the longest of the parts, in µs.
  void Watch(StoreDone<int64_t> done);
  // Says that this process lives for the given time (0: that it leaves), and answers how many do.
  void Present(const std::string& process, int64_t life_us, StoreDone<int64_t> done);

 private:
  // The first arguments of a script.
  std::vector<std::string> Head(const std::string& scope) const;
  std::vector<std::string> Arguments(const Claim& claim, const Hints& hints, bool take) const;

  RedisClient& client_;
  const std::string id_;
  const int64_t lease_us_;
  const Options options_;
};

}  // namespace tollgate::ratelimit
