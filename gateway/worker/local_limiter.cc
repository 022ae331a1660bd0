#include "gateway/worker/local_limiter.h"
#include "common/base/time_units.h"

#include <algorithm>

namespace tollgate::gateway {

namespace ratelimit_pb = ratelimit::v1;

namespace {

// All gateways together grant 1.2 times the limit, because the load is not spread evenly.
constexpr int64_t kShareNumerator = 12;
constexpr int64_t kShareDenominator = 10;
// The longest debt (docs/design/limits.md 3).
constexpr int64_t kMaxDebtUs = 2 * kMinuteUs;

// The time by which `cost` moves a rate of `limit` per minute. A cost above the burst takes the
// whole burst.
int64_t CostUs(int64_t limit, int64_t cost) {
  const double interval = static_cast<double>(kMinuteUs) / static_cast<double>(limit);
  return static_cast<int64_t>(interval * static_cast<double>(std::min(cost, limit)));
}

}  // namespace

int64_t LocalLimiter::LocalShare(int64_t limit) const {
  // Computed in floating point because limits may be too large to multiply.
  const double share = static_cast<double>(limit) * kShareNumerator /
                       static_cast<double>(kShareDenominator * gateways_ * loops_);
  return std::max<int64_t>(1, static_cast<int64_t>(share));
}

// Checks one rate of `limit` per minute with a burst of the same size.
bool LocalLimiter::CheckRate(int64_t limit, int64_t cost, int64_t tat_us, int64_t now_us,
                             int64_t* next_tat_us, int64_t* wait_us) {
  // A cost above the whole burst passes when the burst is unused; otherwise it could never pass.
  const int64_t next = std::max(tat_us, now_us) + CostUs(limit, cost);
  if (next - now_us > kMinuteUs) {
    *wait_us = std::max(*wait_us, next - now_us - kMinuteUs);
    return false;
  }
  *next_tat_us = next;
  return true;
}

namespace {

bool Deny(ratelimit_pb::LimitKind kind, int64_t wait_us, ratelimit_pb::AcquireResult* result) {
  result->set_denied_by(kind);
  result->set_retry_after_ms(std::max<int64_t>(result->retry_after_ms(), (wait_us + 999) / 1000));
  return false;
}

struct NamedLimits {
  std::string name;
  const ratelimit_pb::SubjectLimits* limits;
};

// The subjects with a limit that is enforced.
std::vector<NamedLimits> SubjectsOf(const ratelimit_pb::AcquireItem& item) {
  std::vector<NamedLimits> subjects;
  const auto add = [&](std::string name, const ratelimit_pb::SubjectLimits& limits) {
    if (limits.shadow() || (limits.requests_per_minute() <= 0 && limits.tokens_per_minute() <= 0 &&
                            limits.concurrent_requests() <= 0)) {
      return;
    }
    subjects.push_back({std::move(name), &limits});
  };
  add("k" + item.key_id(), item.key_limits());
  add("w" + item.workspace_id(), item.workspace_limits());
  add("k" + item.key_id() + "/" + item.model(), item.key_model_limits());
  add("w" + item.workspace_id() + "/" + item.model(), item.workspace_model_limits());
  add("m" + item.model(), item.model_limits());
  return subjects;
}

}  // namespace

bool LocalLimiter::CheckSlots(const Subject& subject, const ratelimit_pb::SubjectLimits& limits,
                              ratelimit_pb::AcquireResult* result) const {
  return limits.concurrent_requests() <= 0 ||
         subject.running < LocalShare(limits.concurrent_requests()) ||
         Deny(ratelimit_pb::LIMIT_KIND_CONCURRENCY, 1'000'000, result);
}

bool LocalLimiter::CheckRates(const Subject& subject, const ratelimit_pb::SubjectLimits& limits,
                              int64_t tokens, int64_t now_us, Subject* next,
                              ratelimit_pb::AcquireResult* result) const {
  *next = subject;
  int64_t wait_us = 0;
  if (limits.requests_per_minute() > 0 &&
      !CheckRate(LocalShare(limits.requests_per_minute()), 1, subject.requests_tat_us, now_us,
                 &next->requests_tat_us, &wait_us)) {
    return Deny(ratelimit_pb::LIMIT_KIND_REQUESTS, wait_us, result);
  }
  return limits.tokens_per_minute() <= 0 ||
         CheckRate(LocalShare(limits.tokens_per_minute()), std::max<int64_t>(tokens, 0),
                   subject.tokens_tat_us, now_us, &next->tokens_tat_us, &wait_us) ||
         Deny(ratelimit_pb::LIMIT_KIND_TOKENS, wait_us, result);
}

LocalLimiter::Subject LocalLimiter::Find(const std::string& name) {
  const Subject* found = subjects_.Find(name);
  return found != nullptr ? *found : Subject();
}

// The limiter reports only the limit with the least left. Its reset time applies to the share, too.
// For all other limits, this loop counts only what it was granted.
int64_t LocalLimiter::ObservedTat(int64_t limit, int64_t share, int64_t cost,
                                  const ratelimit_pb::LimitStatus& status, bool granted,
                                  int64_t tat_us, int64_t now_us) {
  if (limit <= 0) return tat_us;
  if (status.limit() == limit) return now_us + std::min(status.reset_ms() * 1000, kMaxDebtUs);
  if (!granted) return tat_us;
  return std::min(std::max(tat_us, now_us) + CostUs(share, cost), now_us + kMinuteUs);
}

void LocalLimiter::Observe(const ratelimit_pb::AcquireItem& item,
                           const ratelimit_pb::AcquireResult& result, int64_t now_us) {
  for (const NamedLimits& one : SubjectsOf(item)) {
    const int64_t requests = one.limits->requests_per_minute();
    const int64_t tokens = one.limits->tokens_per_minute();
    if (requests <= 0 && tokens <= 0) continue;
    Subject subject = Find(one.name);
    subject.requests_tat_us = ObservedTat(requests, LocalShare(requests), 1, result.requests(),
                                          result.granted(), subject.requests_tat_us, now_us);
    subject.tokens_tat_us =
        ObservedTat(tokens, LocalShare(tokens), std::max<int64_t>(item.estimated_tokens(), 0),
                    result.tokens(), result.granted(), subject.tokens_tat_us, now_us);
    subjects_.Insert(one.name, subject);
  }
}

ratelimit_pb::AcquireResult LocalLimiter::Acquire(const ratelimit_pb::AcquireItem& item,
                                                  int64_t now_us) {
  ratelimit_pb::AcquireResult result;
  std::vector<std::pair<std::string, Subject>> changed;
  for (const NamedLimits& one : SubjectsOf(item)) {
    const Subject subject = Find(one.name);
    Subject next;
    if (!CheckSlots(subject, *one.limits, &result) ||
        !CheckRates(subject, *one.limits, item.estimated_tokens(), now_us, &next, &result)) {
      return result;
    }
    changed.emplace_back(one.name, next);
  }
  for (const auto& [name, next] : changed) subjects_.Insert(name, next);
  result.set_granted(true);
  return result;
}

ratelimit_pb::AcquireResult LocalLimiter::CheckSlots(const ratelimit_pb::AcquireItem& item) {
  ratelimit_pb::AcquireResult result;
  for (const NamedLimits& one : SubjectsOf(item)) {
    if (!CheckSlots(Find(one.name), *one.limits, &result)) return result;
  }
  result.set_granted(true);
  return result;
}

LocalSlot LocalLimiter::Take(const ratelimit_pb::AcquireItem& item) {
  std::vector<std::string> names;
  for (const NamedLimits& one : SubjectsOf(item)) {
    if (one.limits->concurrent_requests() <= 0) continue;
    Subject subject = Find(one.name);
    ++subject.running;
    subjects_.Insert(one.name, subject);
    names.push_back(one.name);
  }
  return {*this, std::move(names)};
}

void LocalLimiter::Release(const std::vector<std::string>& subjects) {
  for (const std::string& name : subjects) {
    if (Subject* subject = subjects_.Find(name))
      subject->running = std::max<int64_t>(0, subject->running - 1);
  }
}

void LocalSlot::Free() {
  if (limiter_ != nullptr) limiter_->Release(subjects_);
  limiter_ = nullptr;
}

}  // namespace tollgate::gateway
