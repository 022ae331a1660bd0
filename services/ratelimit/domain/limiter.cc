#include "services/ratelimit/domain/limiter.h"

#include <algorithm>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kNsPerUs = 1000;
// In no scope and no subject.
constexpr char kSeparator = '\n';

std::string NameOf(std::string_view scope, std::string_view subject) {
  std::string name;
  name.reserve(scope.size() + 1 + subject.size());
  name.append(scope).append(1, kSeparator).append(subject);
  return name;
}

}  // namespace

Limiter::Subject& Limiter::FindOrAdd(std::string_view scope, std::string_view name) {
  const auto [place, added] = subjects_.try_emplace(NameOf(scope, name));
  if (added) {
    place->second.requests = Bucket(first_full_ns_);
    place->second.tokens = Bucket(first_full_ns_);
  }
  return place->second;
}

const Limiter::Subject* Limiter::Find(std::string_view scope, std::string_view name) const {
  const auto found = subjects_.find(NameOf(scope, name));
  return found == subjects_.end() ? nullptr : &found->second;
}

Reading Limiter::ReadingOf(const Subject& subject, int64_t now_us) const {
  const int64_t now_ns = now_us * kNsPerUs;
  return {.requests_ns = subject.requests.ResetNs(now_ns),
          .tokens_ns = subject.tokens.ResetNs(now_ns),
          .running = subject.running,
          .median_hold_us = subject.MedianHoldUs(now_us)};
}

Limiter::Lease& Limiter::AddLease(const Claim& claim, int64_t now_us) {
  Lease& lease = leases_[{claim.lease, claim.scope}];
  lease.id = claim.lease;
  lease.scope = claim.scope;
  lease.since_us = now_us;
  lease.expires_us = now_us + lease_us_;
  Append(lease);
  return lease;
}

void Limiter::Take(Lease& lease, Subject& subject, const Cost& cost, int64_t tokens_per_minute,
                   int64_t now_us) {
  subject.requests.Charge(cost.requests_ns, now_us * kNsPerUs);
  subject.tokens.Charge(cost.tokens_ns, now_us * kNsPerUs);
  ++subject.leases;
  if (cost.slot) ++subject.running;
  lease.shares.push_back({&subject, cost, tokens_per_minute});
}

void Limiter::GiveBackSlot(const Share& share) {
  --share.subject->leases;
  if (share.cost.slot) --share.subject->running;
}

AcquireOutcome Limiter::Acquire(const Claim& claim, int64_t now_us) {
  EndExpired(now_us);
  if (subjects_.size() >= sweep_at_) Sweep(now_us);
  std::vector<Reading> readings;
  std::vector<Subject*> subjects;
  for (const SubjectClaim& subject : claim.subjects) {
    subjects.push_back(&FindOrAdd(claim.scope, subject.name));
    readings.push_back(ReadingOf(*subjects.back(), now_us));
  }
  const bool held = leases_.contains({claim.lease, claim.scope});
  AcquireOutcome outcome = Judge(claim, readings, held);
  if (held) {
    Renew(claim, now_us);
    return outcome;
  }
  if (!outcome.granted()) return outcome;
  Lease& lease = AddLease(claim, now_us);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    const Cost cost = CostOf(limits, claim.tokens);
    // A limit in shadow mode takes what it would have granted, so that it refuses as often as it
    // would when enforced.
    if (limits.shadow && !Passes(limits, cost, readings[i])) continue;
    Subject& subject = *subjects[i];
    subject.own = subject.own || cost.requests_ns > 0 || cost.tokens_ns > 0;
    subject.known_requests.Charge(cost.requests_ns, now_us * kNsPerUs);
    subject.known_tokens.Charge(cost.tokens_ns, now_us * kNsPerUs);
    Take(lease, *subjects[i], cost, limits.tokens_per_minute, now_us);
  }
  return outcome;
}

bool Limiter::Release(std::string_view scope, const Id& lease, int64_t actual_tokens, bool refund,
                      int64_t now_us) {
  EndExpired(now_us);
  const auto found = leases_.find({lease, std::string(scope)});
  if (found == leases_.end()) return false;
  Lease& ended = found->second;
  for (Share& share : ended.shares) {
    Settle(share, actual_tokens, refund, now_us - ended.since_us, now_us);
  }
  Unlink(ended);
  leases_.erase(found);
  return true;
}

void Limiter::Settle(Share& share, int64_t actual_tokens, bool refund, int64_t held_us,
                     int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  Subject& subject = *share.subject;
  GiveBackSlot(share);
  if (refund) {
    subject.requests.Refund(share.cost.requests_ns, now_ns);
    subject.tokens.Refund(share.cost.tokens_ns, now_ns);
    return;
  }
  if (share.cost.slot) {
    const int64_t median = subject.MedianHoldUs(now_us);
    const int64_t step = median / 16 + 1;
    subject.median_hold_us = std::max<int64_t>(median + (held_us > median ? step : -step), 1);
    subject.median_at_us = now_us;
  }
  if (share.tokens_per_minute <= 0) return;
  const int64_t actual_ns = CostNs(actual_tokens, share.tokens_per_minute);
  if (actual_ns > share.cost.tokens_ns) {
    subject.tokens.Charge(actual_ns - share.cost.tokens_ns, now_ns);
  } else {
    subject.tokens.Refund(share.cost.tokens_ns - actual_ns, now_ns);
  }
}

Limiter::Renewal Limiter::Renew(const Claim& claim, int64_t now_us) {
  EndExpired(now_us);
  const auto found = leases_.find({claim.lease, claim.scope});
  if (found != leases_.end()) {
    Unlink(found->second);
    found->second.expires_us = now_us + lease_us_;
    Append(found->second);
    return Renewal::kRenewed;
  }
  const auto slot = [](const SubjectClaim& subject) {
    return subject.limits.concurrent_requests > 0;
  };
  if (std::none_of(claim.subjects.begin(), claim.subjects.end(), slot)) return Renewal::kUnknown;
  Lease& lease = AddLease(claim, now_us);
  for (const SubjectClaim& subject : claim.subjects) {
    if (!slot(subject)) continue;
    Take(lease, FindOrAdd(claim.scope, subject.name), {.slot = true}, 0, now_us);
  }
  return Renewal::kRestored;
}

std::vector<Reading> Limiter::Read(const Claim& claim, int64_t now_us) {
  EndExpired(now_us);
  std::vector<Reading> readings;
  for (const SubjectClaim& subject : claim.subjects) {
    const Subject* found = Find(claim.scope, subject.name);
    if (found == nullptr) {
      const int64_t used_ns = Bucket(first_full_ns_).ResetNs(now_us * kNsPerUs);
      readings.push_back({.requests_ns = used_ns, .tokens_ns = used_ns});
      continue;
    }
    readings.push_back(ReadingOf(*found, now_us));
  }
  return readings;
}

std::vector<Limiter::Recollection> Limiter::Recall(const Claim& claim, int64_t now_us) const {
  std::vector<Recollection> recollections;
  for (const SubjectClaim& subject : claim.subjects) {
    const Subject* found = Find(claim.scope, subject.name);
    recollections.push_back(found == nullptr
                                ? Recollection()
                                : Recollection{found->known_requests.ResetNs(now_us * kNsPerUs),
                                               found->known_tokens.ResetNs(now_us * kNsPerUs),
                                               found->own});
  }
  return recollections;
}

void Limiter::Observe(const Claim& claim, const std::vector<Reading>& readings, bool charged,
                      int64_t now_us) {
  if (subjects_.size() >= sweep_at_) Sweep(now_us);
  const int64_t now_ns = now_us * kNsPerUs;
  for (size_t i = 0; i < claim.subjects.size(); ++i) {
    const Cost cost = charged ? CostOf(claim.subjects[i].limits, claim.tokens) : Cost();
    Subject& subject = FindOrAdd(claim.scope, claim.subjects[i].name);
    subject.own = false;
    subject.requests = Bucket(now_ns + ChargedNs(readings[i].requests_ns, cost.requests_ns));
    subject.tokens = Bucket(now_ns + ChargedNs(readings[i].tokens_ns, cost.tokens_ns));
    subject.known_requests = subject.requests;
    subject.known_tokens = subject.tokens;
  }
}

void Limiter::Save(int64_t now_us, const SaveFn& save) const {
  const int64_t now_ns = now_us * kNsPerUs;
  for (const auto& [name, subject] : subjects_) {
    if (subject.requests.Full(now_ns) && subject.tokens.Full(now_ns)) continue;
    const size_t end = name.find(kSeparator);
    save(std::string_view(name).substr(0, end), std::string_view(name).substr(end + 1),
         subject.requests.ResetNs(now_ns), subject.tokens.ResetNs(now_ns));
  }
}

void Limiter::Restore(std::string_view scope, std::string_view subject, int64_t requests_ns,
                      int64_t tokens_ns, int64_t now_us) {
  Subject& state = FindOrAdd(scope, subject);
  state.requests = Bucket(now_us * kNsPerUs + std::clamp<int64_t>(requests_ns, 0, kMaxDebtNs));
  state.tokens = Bucket(now_us * kNsPerUs + std::clamp<int64_t>(tokens_ns, 0, kMaxDebtNs));
}

void Limiter::Sweep(int64_t now_us) {
  EndExpired(now_us);
  const int64_t now_ns = now_us * kNsPerUs;
  std::erase_if(subjects_, [&](const auto& entry) {
    const Subject& subject = entry.second;
    return subject.leases == 0 && subject.requests.Full(now_ns) && subject.tokens.Full(now_ns) &&
           now_us - subject.median_at_us >= kForgetHoldUs;
  });
  sweep_at_ = std::max<size_t>(1024, 2 * subjects_.size());
}

void Limiter::Append(Lease& lease) {
  lease.older = newest_;
  lease.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &lease;
  newest_ = &lease;
}

void Limiter::Unlink(Lease& lease) {
  (lease.older ? lease.older->newer : oldest_) = lease.newer;
  (lease.newer ? lease.newer->older : newest_) = lease.older;
}

void Limiter::EndExpired(int64_t now_us) {
  while (oldest_ && oldest_->expires_us <= now_us) {
    Lease& lease = *oldest_;
    for (const Share& share : lease.shares) GiveBackSlot(share);
    Unlink(lease);
    ++expired_;
    leases_.erase(LeaseKey{lease.id, lease.scope});
  }
}

}  // namespace tollgate::ratelimit
