#include "services/ratelimit/redis/failover_store.h"

#include <algorithm>
#include <chrono>
#include <future>

#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::ratelimit {
namespace {

// A process is no longer counted after this time without a report.
constexpr int64_t kPresenceUs = 5'000'000;
// Used until a process has reached Redis for the first time.
constexpr int64_t kUnknownReplicas = 3;
constexpr int64_t kLogIntervalUs = 10'000'000;
// Twice the interval at which gateways renew slots (gateway/worker/slot.cc): a slot survives two
// lost renewals.
constexpr int64_t kRenewalsUs = 2 * 3'000'000;
constexpr int64_t kLeastGapUs = 2'000'000;
constexpr auto kLeaveTime = std::chrono::milliseconds(200);

int64_t StartEmptyUntil(const Clock& clock) { return clock.MonotonicUs() + kWindowNs / 1000; }

}  // namespace

FailoverStore::FailoverStore(RedisClient& client, const Clock& clock,
                             const FailoverOptions& options)
    : clock_(clock),
      options_(options),
      process_(Id::New().ToHex()),
      redis_(client, options.redis_id, options.slot_life_us,
             {.gap_us = std::max(options.slot_life_us - kRenewalsUs, kLeastGapUs)}),
      local_(clock, options.slot_life_us, StartEmptyUntil(clock)),
      local_decisions_(metrics::Counter(
          "tollgate_ratelimit_local_decisions_total",
          "Requests checked against this process's share because Redis did not answer.")),
      unsettled_(metrics::Gauge("tollgate_ratelimit_redis_unsettled_seconds",
                                "For how long no slots are given because Redis may have lost "
                                "those of running requests.")),
      up_(metrics::Gauge("tollgate_ratelimit_redis_up",
                         "1 while Redis answers the limiter, 0 while it does not.")) {}

int64_t FailoverStore::replicas() const {
  if (options_.replicas > 0) return options_.replicas;
  const int64_t counted = counted_;
  return counted > 0 ? counted : kUnknownReplicas;
}

int64_t FailoverStore::Share(int64_t limit) const {
  if (limit <= 0) return 0;
  // Floating point, because limits may be too large to multiply.
  const double share = static_cast<double>(limit) * static_cast<double>(options_.share_percent) /
                       (100.0 * static_cast<double>(replicas()));
  return std::max<int64_t>(1, static_cast<int64_t>(share));
}

void FailoverStore::OnFailure(const StoreError& reason) {
  const int64_t now_us = clock_.MonotonicUs();
  up_.Set(0);
  int64_t logged_us = logged_us_;
  if ((logged_us == 0 || now_us - logged_us > kLogIntervalUs) &&
      logged_us_.compare_exchange_strong(logged_us, now_us)) {
    log::Warn("Redis does not answer; rate limits are divided between the ratelimit processes",
              {{"reason", reason}, {"processes", replicas()}});
  }
}

void FailoverStore::Acquire(Claim claim, StoreDone<AcquireOutcome> done) {
  const auto shared = std::make_shared<const Claim>(std::move(claim));
  redis_.AcquireWith(
      shared, local_.Recall(*shared), [this, shared, done = std::move(done)](auto answer) {
        if (!answer) return AcquireLocally(*shared, answer.error(), done);
        local_.Observe(*shared, answer->readings, !answer->held && answer->outcome.granted());
        done(std::move(answer->outcome));
      });
}

void FailoverStore::AcquireLocally(const Claim& claim, const StoreError& reason,
                                   const StoreDone<AcquireOutcome>& done) {
  OnFailure(reason);
  local_decisions_.Increment();
  Claim part = claim;
  for (SubjectClaim& subject : part.subjects) {
    subject.limits.requests_per_minute = Share(subject.limits.requests_per_minute);
    subject.limits.tokens_per_minute = Share(subject.limits.tokens_per_minute);
    subject.limits.concurrent_requests = 0;
  }
  local_.Acquire(std::move(part), [&](BasicResult<AcquireOutcome, StoreError> outcome) {
    // Redis may have granted the claim after the timeout: refund it there.
    if (outcome.ok() && !outcome->granted()) {
      redis_.Release(claim.scope, claim.slot, 0, true, [](auto) {});
    }
    if (outcome.ok()) outcome->local_share = true;
    done(std::move(outcome));
  });
}

void FailoverStore::Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
                            StoreDone<bool> done) {
  redis_.Release(scope, slot, actual_tokens, refund,
                 [this, scope, slot, actual_tokens, refund, done = std::move(done)](auto known) {
                   if (known.ok() && *known) return done(true);
                   bool locally = false;
                   local_.Release(scope, slot, actual_tokens, refund,
                                  [&](auto released) { locally = released.ok() && *released; });
                   // Failing makes the caller retry. Otherwise a short pause of Redis would keep
                   // the slot until it expires.
                   if (!known && !locally) return done(Fail{std::move(known).error()});
                   done(locally);
                 });
}

void FailoverStore::Renew(Claim claim, StoreDone<Limiter::Renewal> done) {
  redis_.Renew(std::move(claim), std::move(done));
}

void FailoverStore::Peek(Claim claim, StoreDone<PeekOutcome> done) {
  const auto shared = std::make_shared<const Claim>(std::move(claim));
  redis_.Peek(*shared, [this, shared, done = std::move(done)](auto outcome) {
    if (outcome.ok()) return done(std::move(outcome));
    OnFailure(outcome.error());
    local_.Peek(*shared, done);
  });
}

void FailoverStore::ReadUse(UseQuery query, StoreDone<UseAnswer> done) {
  const auto shared = std::make_shared<const UseQuery>(std::move(query));
  redis_.ReadUse(*shared, [this, shared, done = std::move(done)](auto answer) {
    if (answer.ok()) return done(std::move(answer));
    OnFailure(answer.error());
    local_.ReadUse(*shared, [&done](BasicResult<UseAnswer, StoreError> own) {
      if (own.ok()) own->minutes_known = false;
      done(std::move(own));
    });
  });
}

void FailoverStore::Beat() {
  redis_.Present(process_, kPresenceUs, [this](BasicResult<int64_t, StoreError> count) {
    if (!count) return OnFailure(count.error());
    up_.Set(1);
    counted_ = *count;
  });
  redis_.Watch([this](BasicResult<int64_t, StoreError> wait_us) {
    if (wait_us.ok()) unsettled_.Set(static_cast<double>(*wait_us) / 1e6);
  });
}

void FailoverStore::Leave() {
  const auto left = std::make_shared<std::promise<void>>();
  redis_.Present(process_, 0, [left](auto) { left->set_value(); });
  (void)left->get_future().wait_for(kLeaveTime);
}

}  // namespace tollgate::ratelimit
