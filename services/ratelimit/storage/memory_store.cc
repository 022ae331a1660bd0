#include "services/ratelimit/storage/memory_store.h"

#include <algorithm>
#include <functional>

namespace tollgate::ratelimit {

MemoryStore::MemoryStore(const Clock& clock, int64_t slot_life_us, int64_t full_at_us)
    : clock_(clock), id_("memory:" + Id::New().ToHex()), started_us_(clock.MonotonicUs()) {
  for (size_t i = 0; i < kShards; ++i) {
    shards_.push_back(std::make_unique<Shard>(slot_life_us, full_at_us));
  }
}

MemoryStore::Shard& MemoryStore::ShardOf(std::string_view scope) {
  // Uses the upper bits, because the hash table inside the shard uses the lower ones.
  return *shards_[(std::hash<std::string_view>()(scope) >> 40) % kShards];
}

// Every call reads the time under the lock, so that time never goes back within a shard. It answers
// after the lock is released.
void MemoryStore::Acquire(Claim claim, StoreDone<AcquireOutcome> done) {
  Shard& shard = ShardOf(claim.scope);
  std::unique_lock lock(shard.mutex);
  AcquireOutcome outcome = shard.limiter.Acquire(claim, clock_.MonotonicUs());
  lock.unlock();
  done(std::move(outcome));
}

void MemoryStore::Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
                          StoreDone<bool> done) {
  Shard& shard = ShardOf(scope);
  std::unique_lock lock(shard.mutex);
  const bool known =
      shard.limiter.Release(scope, slot, actual_tokens, refund, clock_.MonotonicUs());
  lock.unlock();
  done(known);
}

void MemoryStore::Renew(Claim claim, StoreDone<Limiter::Renewal> done) {
  Shard& shard = ShardOf(claim.scope);
  std::unique_lock lock(shard.mutex);
  const Limiter::Renewal renewal = shard.limiter.Renew(claim, clock_.MonotonicUs());
  lock.unlock();
  done(renewal);
}

void MemoryStore::Peek(Claim claim, StoreDone<PeekOutcome> done) {
  done(Describe(claim, Read(claim)));
}

void MemoryStore::ReadUse(UseQuery query, StoreDone<UseAnswer> done) {
  Shard& shard = ShardOf(query.scope);
  Claim claim{.scope = std::move(query.scope)};
  for (std::string& name : query.subjects) claim.subjects.push_back({.name = std::move(name)});
  std::unique_lock lock(shard.mutex);
  UseAnswer answer{.now_us = clock_.MonotonicUs()};
  const std::vector<Reading> readings = shard.limiter.Read(claim, answer.now_us);
  for (size_t i = 0; i < readings.size(); ++i) {
    const std::string& name = claim.subjects[i].name;
    answer.subjects.push_back(
        {readings[i], shard.limiter.ReadUse(claim.scope, name, answer.now_us)});
  }
  lock.unlock();
  answer.counted_us = answer.now_us - started_us_;
  done(std::move(answer));
}

std::vector<Reading> MemoryStore::Read(const Claim& claim) {
  Shard& shard = ShardOf(claim.scope);
  std::lock_guard lock(shard.mutex);
  return shard.limiter.Read(claim, clock_.MonotonicUs());
}

std::vector<Limiter::Recollection> MemoryStore::Recall(const Claim& claim) {
  Shard& shard = ShardOf(claim.scope);
  std::lock_guard lock(shard.mutex);
  return shard.limiter.Recall(claim, clock_.MonotonicUs());
}

void MemoryStore::Observe(const Claim& claim, const std::vector<Reading>& readings, bool charged) {
  Shard& shard = ShardOf(claim.scope);
  std::lock_guard lock(shard.mutex);
  shard.limiter.Observe(claim, readings, charged, clock_.MonotonicUs());
}

MemoryStore::Totals MemoryStore::Sweep() {
  Totals totals;
  for (const auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    shard->limiter.Sweep(clock_.MonotonicUs());
    totals.slots += shard->limiter.slots();
    totals.subjects += shard->limiter.subjects();
    totals.expired += shard->limiter.expired();
  }
  return totals;
}

v1::SavedState MemoryStore::Save() {
  v1::SavedState state;
  for (const auto& shard : shards_) {
    std::lock_guard lock(shard->mutex);
    shard->limiter.Save(clock_.MonotonicUs(), [&](std::string_view scope, std::string_view subject,
                                                  int64_t requests_ns, int64_t tokens_ns) {
      v1::SavedRate& rate = *state.add_rates();
      rate.set_scope(std::string(scope));
      rate.set_subject(std::string(subject));
      rate.set_requests_ns(requests_ns);
      rate.set_tokens_ns(tokens_ns);
    });
  }
  return state;
}

void MemoryStore::Restore(const v1::SavedState& state, int64_t elapsed_us) {
  // If the clock was set back meanwhile, nothing recovers.
  const int64_t elapsed_ns = std::clamp<int64_t>(elapsed_us, 0, kMaxDebtNs / 1000) * 1000;
  for (const v1::SavedRate& rate : state.rates()) {
    Shard& shard = ShardOf(rate.scope());
    std::lock_guard lock(shard.mutex);
    shard.limiter.Restore(rate.scope(), rate.subject(), rate.requests_ns() - elapsed_ns,
                          rate.tokens_ns() - elapsed_ns, clock_.MonotonicUs());
  }
}

}  // namespace tollgate::ratelimit
