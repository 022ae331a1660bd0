#include "services/ratelimit/domain/limiter.h"

#include <algorithm>

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kNsPerUs = 1000;
constexpr int64_t kUsPerMs = 1000;
constexpr int64_t kNsPerMs = kNsPerUs * kUsPerMs;

int64_t CeilMs(int64_t ns) { return (ns + kNsPerMs - 1) / kNsPerMs; }

Status StatusOf(const Bucket& bucket, int64_t limit, int64_t now_ns) {
  if (limit <= 0) return {};
  return {limit, bucket.Remaining(limit, now_ns), CeilMs(bucket.ResetNs(now_ns))};
}

// The status with less left. A subject without this limit does not count.
const Status& Tighter(const Status& a, const Status& b) {
  if (a.limit == 0) return b;
  if (b.limit == 0) return a;
  if (a.remaining != b.remaining) return a.remaining < b.remaining ? a : b;
  return a.reset_ms >= b.reset_ms ? a : b;
}

// Up to 3 % more, so that clients refused at the same time do not retry at the same time. The
// jitter comes from the random lease id, so this is a pure function.
int64_t WithJitter(int64_t ms, const Id& lease) {
  return ms + ms * static_cast<int64_t>(lease.bytes()[15] % 31) / 1000;
}

// Combines refusals: the kind with the highest precedence and the longest wait.
class Verdict {
 public:
  void Refuse(Kind kind, int64_t wait_ms) {
    kind_ = kind_ == Kind::kNone ? kind : std::min(kind_, kind);
    wait_ms_ = std::max(wait_ms_, std::max<int64_t>(wait_ms, 1));
  }
  Kind kind() const { return kind_; }
  int64_t wait_ms() const { return wait_ms_; }

 private:
  Kind kind_ = Kind::kNone;
  int64_t wait_ms_ = 0;
};

template <typename Subject>
void CheckLimits(Verdict& verdict, const Subject& subject, const Limits& limits, int64_t tokens,
                 int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  if (limits.requests_per_minute > 0) {
    const int64_t wait = subject.requests.WaitNs(CostNs(1, limits.requests_per_minute), now_ns);
    if (wait > 0) verdict.Refuse(Kind::kRequests, CeilMs(wait));
  }
  if (limits.concurrent_requests > 0 && subject.running >= limits.concurrent_requests) {
    const int64_t wait_ms = subject.median_hold_us / limits.concurrent_requests / kUsPerMs;
    verdict.Refuse(Kind::kConcurrency, std::clamp<int64_t>(wait_ms, 1000, 10'000));
  }
  if (limits.tokens_per_minute > 0) {
    const int64_t wait = subject.tokens.WaitNs(CostNs(tokens, limits.tokens_per_minute), now_ns);
    if (wait > 0) verdict.Refuse(Kind::kTokens, CeilMs(wait));
  }
}

}  // namespace

Limiter::Subject& Limiter::FindOrAdd(Subjects& subjects, std::string_view name) {
  const auto found = subjects.find(name);
  if (found != subjects.end()) return found->second;
  return subjects.emplace(std::string(name), Subject()).first->second;
}

AcquireOutcome Limiter::Acquire(const AcquireArgs& args, int64_t now_us) {
  EndExpired(now_us);
  if (subjects() >= sweep_at_) Sweep(now_us);
  const int64_t now_ns = now_us * kNsPerUs;
  const int64_t tokens = std::max<int64_t>(args.estimated_tokens, 0);
  Subject& key = FindOrAdd(keys_, args.key_id);
  Subject& workspace = FindOrAdd(workspaces_, args.workspace_id);

  AcquireOutcome outcome;
  const auto held = leases_.find(args.lease);
  if (held != leases_.end()) {
    Renew(args.lease, now_us);
  } else {
    Verdict verdict;
    CheckLimits(verdict, key, args.key_limits, tokens, now_us);
    CheckLimits(verdict, workspace, args.workspace_limits, tokens, now_us);
    outcome.denied_by = verdict.kind();
    if (outcome.granted()) {
      Lease& lease = leases_[args.lease];
      lease.id = args.lease;
      lease.since_us = now_us;
      Charge(lease.key, key, args.key_limits, tokens, now_us);
      Charge(lease.workspace, workspace, args.workspace_limits, tokens, now_us);
      lease.expires_us = now_us + lease_us_;
      Append(lease);
    } else {
      outcome.retry_after_ms = WithJitter(verdict.wait_ms(), args.lease);
    }
  }
  outcome.requests =
      Tighter(StatusOf(key.requests, args.key_limits.requests_per_minute, now_ns),
              StatusOf(workspace.requests, args.workspace_limits.requests_per_minute, now_ns));
  outcome.tokens =
      Tighter(StatusOf(key.tokens, args.key_limits.tokens_per_minute, now_ns),
              StatusOf(workspace.tokens, args.workspace_limits.tokens_per_minute, now_ns));
  return outcome;
}

void Limiter::Charge(Share& share, Subject& subject, const Limits& limits, int64_t tokens,
                     int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  share.subject = &subject;
  ++subject.running;
  if (limits.requests_per_minute > 0) {
    share.requests_ns = CostNs(1, limits.requests_per_minute);
    subject.requests.Charge(share.requests_ns, now_ns);
  }
  if (limits.tokens_per_minute > 0) {
    share.tokens_per_minute = limits.tokens_per_minute;
    share.tokens_ns = CostNs(tokens, limits.tokens_per_minute);
    subject.tokens.Charge(share.tokens_ns, now_ns);
  }
}

bool Limiter::Release(std::string_view workspace_id, const Id& lease, int64_t actual_tokens,
                      bool refund, int64_t now_us) {
  EndExpired(now_us);
  const auto workspace = workspaces_.find(workspace_id);
  const auto found = leases_.find(lease);
  if (found == leases_.end() || workspace == workspaces_.end()) return false;
  if (found->second.workspace.subject != &workspace->second) return false;
  Lease& ended = found->second;
  const int64_t held_us = now_us - ended.since_us;
  Settle(ended.key, actual_tokens, refund, held_us, now_us);
  Settle(ended.workspace, actual_tokens, refund, held_us, now_us);
  Unlink(ended);
  leases_.erase(found);
  return true;
}

void Limiter::Settle(Share& share, int64_t actual_tokens, bool refund, int64_t held_us,
                     int64_t now_us) {
  const int64_t now_ns = now_us * kNsPerUs;
  Subject& subject = *share.subject;
  --subject.running;
  if (refund) {
    subject.requests.Refund(share.requests_ns, now_ns);
    subject.tokens.Refund(share.tokens_ns, now_ns);
    return;
  }
  const int64_t step = subject.median_hold_us / 16 + 1;
  subject.median_hold_us += held_us > subject.median_hold_us ? step : -step;
  subject.median_hold_us = std::max<int64_t>(subject.median_hold_us, 1);
  if (share.tokens_per_minute == 0) return;
  const int64_t actual_ns = CostNs(actual_tokens, share.tokens_per_minute);
  if (actual_ns > share.tokens_ns) {
    subject.tokens.Charge(actual_ns - share.tokens_ns, now_ns);
  } else {
    subject.tokens.Refund(share.tokens_ns - actual_ns, now_ns);
  }
}

bool Limiter::Renew(const Id& lease, int64_t now_us) {
  EndExpired(now_us);
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return false;
  Unlink(found->second);
  found->second.expires_us = now_us + lease_us_;
  Append(found->second);
  return true;
}

PeekOutcome Limiter::Peek(std::string_view workspace_id, std::string_view key_id,
                          const Limits& key_limits, const Limits& workspace_limits,
                          int64_t now_us) {
  EndExpired(now_us);
  const int64_t now_ns = now_us * kNsPerUs;
  static const Subject kUnused;
  const auto find = [](const Subjects& subjects, std::string_view name) -> const Subject& {
    const auto found = subjects.find(name);
    return found == subjects.end() ? kUnused : found->second;
  };
  const auto slots = [](const Subject& subject, int64_t limit) -> Status {
    if (limit <= 0) return {};
    return {limit, std::max<int64_t>(limit - subject.running, 0), 0};
  };
  const Subject& key = find(keys_, key_id);
  const Subject& workspace = find(workspaces_, workspace_id);
  return {
      .requests =
          Tighter(StatusOf(key.requests, key_limits.requests_per_minute, now_ns),
                  StatusOf(workspace.requests, workspace_limits.requests_per_minute, now_ns)),
      .tokens = Tighter(StatusOf(key.tokens, key_limits.tokens_per_minute, now_ns),
                        StatusOf(workspace.tokens, workspace_limits.tokens_per_minute, now_ns)),
      .concurrency = Tighter(slots(key, key_limits.concurrent_requests),
                             slots(workspace, workspace_limits.concurrent_requests)),
  };
}

void Limiter::Sweep(int64_t now_us) {
  EndExpired(now_us);
  DropIdle(keys_, now_us * kNsPerUs);
  DropIdle(workspaces_, now_us * kNsPerUs);
  sweep_at_ = std::max<size_t>(1024, 2 * subjects());
}

void Limiter::DropIdle(Subjects& subjects, int64_t now_ns) {
  std::erase_if(subjects, [&](const auto& entry) {
    const Subject& subject = entry.second;
    return subject.running == 0 && subject.requests.Full(now_ns) && subject.tokens.Full(now_ns);
  });
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
    --lease.key.subject->running;
    --lease.workspace.subject->running;
    Unlink(lease);
    ++expired_;
    leases_.erase(Id(lease.id));
  }
}

}  // namespace tollgate::ratelimit
