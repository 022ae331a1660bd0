#include "services/ratelimit/domain/limiter.h"

#include <algorithm>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kNsPerUs = 1000;
// A sweep visits every subject, which may be all those used in an hour.
constexpr int64_t kDropIntervalUs = 10'000'000;
// Does not occur in scopes and subject names.
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
  if (subjects_.size() >= drop_at_) DropIdle(now_us);
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
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    if (limits.concurrent_requests > 0) subjects[i]->use.Running(readings[i].running, now_us);
    // A granted claim passes all enforced limits, so only shadow limits can refuse it.
    if (outcome.granted() && !limits.shadow) continue;
    const Refusals refusals = RefusalsOf(limits, CostOf(limits, claim.tokens), readings[i]);
    if (refusals.any()) subjects[i]->use.Refuse(refusals, now_us);
  }
  if (!outcome.granted()) return outcome;
  Lease& lease = AddLease(claim, now_us);
  lease.tokens = std::clamp<int64_t>(claim.tokens, 0, kMaxCountedTokens);
  for (size_t i = 0; i < subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    const Cost cost = CostOf(limits, claim.tokens);
    // A limit in shadow mode is charged only if it would have granted, so that it refuses as often
    // as when enforced.
    if (limits.shadow && RefusalsOf(limits, cost, readings[i]).any()) continue;
    Subject& subject = *subjects[i];
    subject.own = subject.own || cost.requests_ns > 0 || cost.tokens_ns > 0;
    const int64_t now_ns = now_us * kNsPerUs;
    subject.known_requests.Charge(cost.requests_ns, now_ns);
    subject.known_tokens.Charge(cost.tokens_ns, now_ns);
    Take(lease, subject, cost, limits.tokens_per_minute, now_us);
    subject.use.Admit(limits.tokens_per_minute > 0 ? lease.tokens : -1,
                      limits.requests_per_minute > 0 ? subject.requests.ResetNs(now_ns) : 0,
                      limits.tokens_per_minute > 0 ? subject.tokens.ResetNs(now_ns) : 0, now_us);
    if (cost.slot) subject.use.Running(subject.running, now_us);
  }
  return outcome;
}

bool Limiter::Release(std::string_view scope, const Id& lease, int64_t actual_tokens, bool refund,
                      int64_t now_us) {
  EndExpired(now_us);
  const auto found = leases_.find({lease, std::string(scope)});
  if (found == leases_.end()) return false;
  Lease& ended = found->second;
  for (const Share& share : ended.shares) Settle(ended, share, actual_tokens, refund, now_us);
  Unlink(ended);
  leases_.erase(found);
  return true;
}

void Limiter::CorrectUse(const Lease& lease, const Share& share, int64_t actual_tokens, bool refund,
                         int64_t now_us) {
  if (lease.tokens < 0 || (!refund && share.tokens_per_minute <= 0)) return;
  const int64_t used = refund ? 0 : std::clamp<int64_t>(actual_tokens, 0, kMaxCountedTokens);
  share.subject->use.Correct(lease.since_us, refund ? -1 : 0,
                             share.tokens_per_minute > 0 ? used - lease.tokens : 0, now_us);
}

void Limiter::Settle(const Lease& lease, const Share& share, int64_t actual_tokens, bool refund,
                     int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  const int64_t held_us = now_us - lease.since_us;
  Subject& subject = *share.subject;
  if (share.cost.slot) subject.use.Running(subject.running, now_us);
  CorrectUse(lease, share, actual_tokens, refund, now_us);
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
    subject.use.TokensUsed(subject.tokens.ResetNs(now_ns), now_us);
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
    for (const Share& share : found->second.shares) {
      if (share.cost.slot) share.subject->use.Running(share.subject->running, now_us);
    }
    return Renewal::kRenewed;
  }
  const auto slot = [](const SubjectClaim& subject) {
    return subject.limits.concurrent_requests > 0;
  };
  if (std::none_of(claim.subjects.begin(), claim.subjects.end(), slot)) return Renewal::kUnknown;
  Lease& lease = AddLease(claim, now_us);
  for (const SubjectClaim& subject : claim.subjects) {
    if (!slot(subject)) continue;
    Subject& slots = FindOrAdd(claim.scope, subject.name);
    Take(lease, slots, {.slot = true}, 0, now_us);
    slots.use.Running(slots.running, now_us);
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

std::vector<MinuteUse> Limiter::ReadUse(std::string_view scope, std::string_view subject,
                                        int64_t now_us) const {
  const Subject* found = Find(scope, subject);
  return found == nullptr ? std::vector<MinuteUse>() : found->use.Read(now_us);
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
  if (subjects_.size() >= drop_at_) DropIdle(now_us);
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
  if (now_us >= drop_after_us_) DropIdle(now_us);
}

void Limiter::DropIdle(int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  for (auto at = subjects_.begin(); at != subjects_.end();) {
    Subject& subject = at->second;
    const bool idle = subject.use.Forget(now_us) && subject.leases == 0 &&
                      subject.requests.Full(now_ns) && subject.tokens.Full(now_ns) &&
                      now_us - subject.median_at_us >= kForgetHoldUs;
    at = idle ? subjects_.erase(at) : std::next(at);
  }
  drop_at_ = std::max<size_t>(1024, 2 * subjects_.size());
  drop_after_us_ = now_us + kDropIntervalUs;
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
