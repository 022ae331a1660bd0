// Interface to the state of the limits: this process's memory (memory_store.h), Redis
// (redis/redis_store.h), or Redis with a share in memory while it is unreachable
// (failover_store.h). All give the same answers to the same calls at the same times. Thread-safe.
// Calls never block; they answer on any thread, possibly before they return.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "services/ratelimit/domain/decision.h"
#include "services/ratelimit/domain/limiter.h"

namespace tollgate::ratelimit {

// Why the store has no answer, for logs.
using StoreError = std::string;
template <typename T>
using StoreDone = std::function<void(BasicResult<T, StoreError>)>;

// Subjects of one scope.
struct UseQuery {
  std::string scope;
  std::vector<std::string> subjects;
};
struct UseAnswer {
  struct Of {
    Reading reading;
    std::vector<MinuteUse> minutes;  // in order of time
  };
  std::vector<Of> subjects;
  // Time on the clock that counts the minutes.
  int64_t now_us = 0;
  // Time since uses have been counted without a loss.
  int64_t counted_us = 0;
  // False: only the readings are known, and only those of this process's share.
  bool minutes_known = true;
};

class LimiterStore {
 public:
  virtual ~LimiterStore() = default;
  // Takes from all limits of the claim, atomically, or from none.
  virtual void Acquire(Claim claim, StoreDone<AcquireOutcome> done) = 0;
  // Answers false if the scope has no such slot.
  virtual void Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
                       StoreDone<bool> done) = 0;
  virtual void Renew(Claim claim, StoreDone<Limiter::Renewal> done) = 0;
  virtual void Peek(Claim claim, StoreDone<PeekOutcome> done) = 0;
  // Current use, and the use of the last hour. Takes nothing.
  virtual void ReadUse(UseQuery query, StoreDone<UseAnswer> done) = 0;
  // Identifies the state: equal for all stores that share it (AcquireResponse.store_id).
  virtual const std::string& id() const = 0;
};

}  // namespace tollgate::ratelimit
