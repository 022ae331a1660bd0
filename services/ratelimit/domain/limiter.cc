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

Limiter::Slot& Limiter::AddSlot(const Claim& claim, int64_t now_us) {
  Slot& slot = slots_[{claim.slot, claim.scope}];
  slot.id = claim.slot;
  slot.scope = claim.scope;
  slot.since_us = now_us;
  slot.expires_us = now_us + slot_life_us_;
  Append(slot);
  return slot;
}

void Limiter::Take(Slot& slot, Subject& subject, const Cost& cost, int64_t tokens_per_minute,
                   int64_t now_us) {
  subject.requests.Charge(cost.requests_ns, now_us * kNsPerUs);
  subject.tokens.Charge(cost.tokens_ns, now_us * kNsPerUs);
  ++subject.slots;
  if (cost.slot) ++subject.running;
  slot.shares.push_back({&subject, cost, tokens_per_minute});
}

void Limiter::GiveBackSlot(const Share& share) {
  --share.subject->slots;
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
  const bool held = slots_.contains({claim.slot, claim.scope});
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
  Slot& slot = AddSlot(claim, now_us);
  slot.tokens = std::clamp<int64_t>(claim.tokens, 0, kMaxCountedTokens);
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
    Take(slot, subject, cost, limits.tokens_per_minute, now_us);
    subject.use.Admit(limits.tokens_per_minute > 0 ? slot.tokens : -1,
                      limits.requests_per_minute > 0 ? subject.requests.ResetNs(now_ns) : 0,
                      limits.tokens_per_minute > 0 ? subject.tokens.ResetNs(now_ns) : 0, now_us);
    if (cost.slot) subject.use.Running(subject.running, now_us);
  }
  return outcome;
}

bool Limiter::Release(std::string_view scope, const Id& slot, int64_t actual_tokens, bool refund,
                      int64_t now_us) {
  EndExpired(now_us);
  const auto found = slots_.find({slot, std::string(scope)});
  if (found == slots_.end()) return false;
  Slot& ended = found->second;
  for (const Share& share : ended.shares) Settle(ended, share, actual_tokens, refund, now_us);
  Unlink(ended);
  slots_.erase(found);
  return true;
}

void Limiter::CorrectUse(const Slot& slot, const Share& share, int64_t actual_tokens, bool refund,
                         int64_t now_us) {
  if (slot.tokens < 0 || (!refund && share.tokens_per_minute <= 0)) return;
  const int64_t used = refund ? 0 : std::clamp<int64_t>(actual_tokens, 0, kMaxCountedTokens);
  share.subject->use.Correct(slot.since_us, refund ? -1 : 0,
                             share.tokens_per_minute > 0 ? used - slot.tokens : 0, now_us);
}

void Limiter::Settle(const Slot& slot, const Share& share, int64_t actual_tokens, bool refund,
                     int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  const int64_t held_us = now_us - slot.since_us;
  Subject& subject = *share.subject;
  if (share.cost.slot) subject.use.Running(subject.running, now_us);
  CorrectUse(slot, share, actual_tokens, refund, now_us);
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
  const auto found = slots_.find({claim.slot, claim.scope});
  if (found != slots_.end()) {
    Unlink(found->second);
    found->second.expires_us = now_us + slot_life_us_;
    Append(found->second);
    for (const Share& share : found->second.shares) {
      if (share.cost.slot) share.subject->use.Running(share.subject->running, now_us);
    }
    return Renewal::kRenewed;
  }
  const auto counts = [](const SubjectClaim& subject) {
    return subject.limits.concurrent_requests > 0;
  };
  if (std::none_of(claim.subjects.begin(), claim.subjects.end(), counts)) return Renewal::kUnknown;
  Slot& slot = AddSlot(claim, now_us);
  for (const SubjectClaim& subject : claim.subjects) {
    if (!counts(subject)) continue;
    Subject& counted = FindOrAdd(claim.scope, subject.name);
    Take(slot, counted, {.slot = true}, 0, now_us);
    counted.use.Running(counted.running, now_us);
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
    const bool idle = subject.use.Forget(now_us) && subject.slots == 0 &&
                      subject.requests.Full(now_ns) && subject.tokens.Full(now_ns) &&
                      now_us - subject.median_at_us >= kForgetHoldUs;
    at = idle ? subjects_.erase(at) : std::next(at);
  }
  drop_at_ = std::max<size_t>(1024, 2 * subjects_.size());
  drop_after_us_ = now_us + kDropIntervalUs;
}

void Limiter::Append(Slot& slot) {
  slot.older = newest_;
  slot.newer = nullptr;
  (newest_ ? newest_->newer : oldest_) = &slot;
  newest_ = &slot;
}

void Limiter::Unlink(Slot& slot) {
  (slot.older ? slot.older->newer : oldest_) = slot.newer;
  (slot.newer ? slot.newer->older : newest_) = slot.older;
}

void Limiter::EndExpired(int64_t now_us) {
  while (oldest_ && oldest_->expires_us <= now_us) {
    Slot& slot = *oldest_;
    for (const Share& share : slot.shares) GiveBackSlot(share);
    Unlink(slot);
    ++expired_;
    slots_.erase(SlotKey{slot.id, slot.scope});
  }
}

}  // namespace tollgate::ratelimit
