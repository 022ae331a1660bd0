#include "services/ratelimit/domain/decision.h"

#include <algorithm>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kUsPerMs = 1000;
constexpr int64_t kNsPerMs = 1'000'000;

int64_t CeilMs(int64_t ns) { return (ns + kNsPerMs - 1) / kNsPerMs; }

Status StatusOf(int64_t used_ns, int64_t limit) {
  if (limit <= 0) return {};
  return {limit, RemainingOf(used_ns, limit), CeilMs(used_ns)};
}

// The status with less remaining. A subject without this limit is ignored.
const Status& Tighter(const Status& a, const Status& b) {
  if (a.limit == 0) return b;
  if (b.limit == 0) return a;
  if (a.remaining != b.remaining) return a.remaining < b.remaining ? a : b;
  return a.reset_ms >= b.reset_ms ? a : b;
}

// Combines refusals: the kind that comes first in Kind, and the longest wait.
class Verdict {
 public:
  void Refuse(Kind kind, Who who, int64_t wait_ms) {
    if (kind_ == Kind::kNone || kind < kind_) {
      kind_ = kind;
      who_ = who;
    }
    wait_ms_ = std::max(wait_ms_, std::max<int64_t>(wait_ms, 1));
  }
  Kind kind() const { return kind_; }
  Who who() const { return who_; }
  int64_t wait_ms() const { return wait_ms_; }

 private:
  Kind kind_ = Kind::kNone;
  Who who_ = Who::kNone;
  int64_t wait_ms_ = 0;
};

void Check(Verdict& verdict, const SubjectClaim& subject, const Cost& cost,
           const Reading& reading) {
  const Limits& limits = subject.limits;
  if (limits.requests_per_minute > 0) {
    const int64_t wait = WaitNs(reading.requests_ns, cost.requests_ns);
    if (wait > 0) verdict.Refuse(Kind::kRequests, subject.who, CeilMs(wait));
  }
  if (cost.slot && reading.running >= limits.concurrent_requests) {
    const int64_t wait_ms = reading.median_hold_us / limits.concurrent_requests / kUsPerMs;
    verdict.Refuse(Kind::kConcurrency, subject.who, std::clamp<int64_t>(wait_ms, 1000, 10'000));
  }
  if (limits.tokens_per_minute > 0) {
    const int64_t wait = WaitNs(reading.tokens_ns, cost.tokens_ns);
    if (wait > 0) verdict.Refuse(Kind::kTokens, subject.who, CeilMs(wait));
  }
}

}  // namespace

Cost CostOf(const Limits& limits, int64_t tokens) {
  Cost cost;
  if (limits.requests_per_minute > 0) cost.requests_ns = CostNs(1, limits.requests_per_minute);
  if (limits.tokens_per_minute > 0) cost.tokens_ns = CostNs(tokens, limits.tokens_per_minute);
  cost.slot = limits.concurrent_requests > 0;
  return cost;
}

Refusals RefusalsOf(const Limits& limits, const Cost& cost, const Reading& reading) {
  return {.requests =
              limits.requests_per_minute > 0 && WaitNs(reading.requests_ns, cost.requests_ns) > 0,
          .concurrency = cost.slot && reading.running >= limits.concurrent_requests,
          .tokens = limits.tokens_per_minute > 0 && WaitNs(reading.tokens_ns, cost.tokens_ns) > 0};
}

AcquireOutcome Judge(const Claim& claim, std::span<const Reading> readings, bool held) {
  AcquireOutcome outcome;
  Verdict verdict;
  for (size_t i = 0; i < claim.subjects.size() && !held; ++i) {
    const SubjectClaim& subject = claim.subjects[i];
    const Cost cost = CostOf(subject.limits, claim.tokens);
    if (!subject.limits.shadow) {
      Check(verdict, subject, cost, readings[i]);
      continue;
    }
    Verdict shadow;
    Check(shadow, subject, cost, readings[i]);
    if (shadow.kind() != Kind::kNone) outcome.shadow_refusals.push_back(shadow.kind());
  }
  outcome.denied_by = verdict.kind();
  outcome.denied_subject = verdict.who();
  outcome.retry_after_ms = verdict.wait_ms();
  const bool charged = !held && outcome.granted();
  for (size_t i = 0; i < claim.subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    if (limits.shadow) continue;
    const Cost cost = charged ? CostOf(limits, claim.tokens) : Cost();
    outcome.requests = Tighter(
        outcome.requests,
        StatusOf(ChargedNs(readings[i].requests_ns, cost.requests_ns), limits.requests_per_minute));
    outcome.tokens = Tighter(
        outcome.tokens,
        StatusOf(ChargedNs(readings[i].tokens_ns, cost.tokens_ns), limits.tokens_per_minute));
  }
  return outcome;
}

PeekOutcome Describe(const Claim& claim, std::span<const Reading> readings) {
  PeekOutcome outcome;
  for (size_t i = 0; i < claim.subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    if (limits.shadow) continue;
    PeekOutcome own{.requests = StatusOf(readings[i].requests_ns, limits.requests_per_minute),
                    .tokens = StatusOf(readings[i].tokens_ns, limits.tokens_per_minute)};
    if (limits.concurrent_requests > 0) {
      own.concurrency = {limits.concurrent_requests,
                         std::max<int64_t>(limits.concurrent_requests - readings[i].running, 0), 0};
    }
    Combine(own, outcome);
  }
  return outcome;
}

void Combine(const PeekOutcome& other, PeekOutcome& into) {
  into.requests = Tighter(into.requests, other.requests);
  into.tokens = Tighter(into.tokens, other.tokens);
  into.concurrency = Tighter(into.concurrency, other.concurrency);
}

void Combine(const AcquireOutcome& other, AcquireOutcome& into) {
  into.requests = Tighter(into.requests, other.requests);
  into.tokens = Tighter(into.tokens, other.tokens);
  into.shadow_refusals.insert(into.shadow_refusals.end(), other.shadow_refusals.begin(),
                              other.shadow_refusals.end());
  into.local_share = into.local_share || other.local_share;
  if (other.granted()) return;
  into.denied_by = other.denied_by;
  into.denied_subject = other.denied_subject;
  into.retry_after_ms = other.retry_after_ms;
}

}  // namespace tollgate::ratelimit
