#include "gateway/worker/local_limiter.h"

#include <algorithm>

namespace tollgate::gateway {

namespace pb = ratelimit::v1;

namespace {

constexpr int64_t kMinuteUs = 60'000'000;
// A gateway does not know how many other gateways serve the same keys. With two of them the total
// is 1.2 times the limit.
constexpr int64_t kShareNumerator = 6;
constexpr int64_t kShareDenominator = 10;

}  // namespace

int64_t LocalLimiter::LocalShare(int64_t limit) const {
  // In floating point: limits may be too large to multiply.
  const double share = static_cast<double>(limit) * kShareNumerator / (kShareDenominator * loops_);
  return std::max<int64_t>(1, static_cast<int64_t>(share));
}

// One rate of `limit` a minute with a burst of the same size.
bool LocalLimiter::CheckRate(int64_t limit, int64_t cost, int64_t tat_us, int64_t now_us,
                             int64_t* next_tat_us, int64_t* wait_us) {
  // A cost above the whole burst passes when the burst is unused; otherwise it could never pass.
  const double interval = static_cast<double>(kMinuteUs) / static_cast<double>(limit);
  const auto cost_us = static_cast<int64_t>(interval * static_cast<double>(std::min(cost, limit)));
  const int64_t next = std::max(tat_us, now_us) + cost_us;
  if (next - now_us > kMinuteUs) {
    *wait_us = std::max(*wait_us, next - now_us - kMinuteUs);
    return false;
  }
  *next_tat_us = next;
  return true;
}

bool LocalLimiter::CheckSubject(Subject& subject, const pb::SubjectLimits& limits, int64_t tokens,
                                int64_t now_us, Subject* next, pb::AcquireResult* result) const {
  *next = subject;
  int64_t wait_us = 0;
  const auto deny = [&](pb::LimitKind kind, int64_t wait) {
    result->set_denied_by(kind);
    result->set_retry_after_ms(std::max<int64_t>(result->retry_after_ms(), (wait + 999) / 1000));
    return false;
  };
  if (limits.concurrent_requests() > 0 &&
      subject.running >= LocalShare(limits.concurrent_requests())) {
    return deny(pb::LIMIT_KIND_CONCURRENCY, 1'000'000);
  }
  if (limits.requests_per_minute() > 0 &&
      !CheckRate(LocalShare(limits.requests_per_minute()), 1, subject.requests_tat_us, now_us,
                 &next->requests_tat_us, &wait_us)) {
    return deny(pb::LIMIT_KIND_REQUESTS, wait_us);
  }
  if (limits.tokens_per_minute() > 0 &&
      !CheckRate(LocalShare(limits.tokens_per_minute()), std::max<int64_t>(tokens, 0),
                 subject.tokens_tat_us, now_us, &next->tokens_tat_us, &wait_us)) {
    return deny(pb::LIMIT_KIND_TOKENS, wait_us);
  }
  ++next->running;
  return true;
}

pb::AcquireResult LocalLimiter::Acquire(const pb::AcquireItem& item, int64_t now_us) {
  pb::AcquireResult result;
  const std::string key_name = "k" + item.key_id(), workspace_name = "w" + item.workspace_id();
  Subject none;
  Subject next_key, next_workspace;
  const Subject* found = subjects_.Find(key_name);
  Subject key = found != nullptr ? *found : none;
  found = subjects_.Find(workspace_name);
  Subject workspace = found != nullptr ? *found : none;
  const int64_t tokens = item.estimated_tokens();
  const bool granted =
      CheckSubject(key, item.key_limits(), tokens, now_us, &next_key, &result) &&
      CheckSubject(workspace, item.workspace_limits(), tokens, now_us, &next_workspace, &result);
  result.set_granted(granted);
  if (granted) {
    subjects_.Insert(key_name, next_key);
    subjects_.Insert(workspace_name, next_workspace);
  }
  return result;
}

void LocalLimiter::Release(const std::string& workspace_id, const std::string& key_id) {
  for (const std::string& name : {"k" + key_id, "w" + workspace_id}) {
    if (Subject* subject = subjects_.Find(name))
      subject->running = std::max<int64_t>(0, subject->running - 1);
  }
}

}  // namespace tollgate::gateway
