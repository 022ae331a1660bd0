#include "gateway/pipeline/admission/admit.h"

#include <algorithm>
#include <utility>

#include "common/clients/limiter_gateways.h"
#include "common/keys/lineage.h"
#include "common/observability/log.h"
#include "gateway/pipeline/admission/limit_headers.h"
#include "gateway/pipeline/admission/limits.h"

namespace tollgate::gateway {

namespace {

namespace ratelimit_pb = ratelimit::v1;

// Output tokens that the token limits are charged before the real number is known
// (docs/design/limits.md).
constexpr int64_t kExpectedOutputTokens = 1024;
// Minimum time between two log lines about an outage of the limiter.
constexpr int64_t kFallbackLogIntervalUs = 10'000'000;

template <typename Visit>
void ForEachLimit(ratelimit_pb::AcquireItem& item, const Visit& visit) {
  if (item.has_key_limits()) visit(*item.mutable_key_limits());
  if (item.has_workspace_limits()) visit(*item.mutable_workspace_limits());
  if (item.has_key_model_limits()) visit(*item.mutable_key_model_limits());
  if (item.has_workspace_model_limits()) visit(*item.mutable_workspace_model_limits());
  if (item.has_model_limits()) visit(*item.mutable_model_limits());
}

// Copies to the renewal what the limiter needs to restore the slot.
ratelimit_pb::RenewItem RenewOf(const ratelimit_pb::AcquireItem& item) {
  ratelimit_pb::RenewItem renew;
  renew.set_lease_id(item.lease_id());
  renew.set_workspace_id(item.workspace_id());
  renew.set_key_id(item.key_id());
  renew.set_model(item.model());
  if (item.has_key_limits()) *renew.mutable_key_limits() = item.key_limits();
  if (item.has_workspace_limits()) *renew.mutable_workspace_limits() = item.workspace_limits();
  if (item.has_key_model_limits()) *renew.mutable_key_model_limits() = item.key_model_limits();
  if (item.has_workspace_model_limits()) {
    *renew.mutable_workspace_model_limits() = item.workspace_model_limits();
  }
  if (item.has_model_limits()) *renew.mutable_model_limits() = item.model_limits();
  return renew;
}

// The subject of the limit, for the message.
std::string WhoseLimit(ratelimit_pb::LimitSubject subject) {
  switch (subject) {
    case ratelimit_pb::LIMIT_SUBJECT_KEY_MODEL:
    case ratelimit_pb::LIMIT_SUBJECT_WORKSPACE_MODEL:
      return " for this model";
    case ratelimit_pb::LIMIT_SUBJECT_MODEL:
      return " for this model, shared by all callers,";
    default:
      return "";
  }
}

Fail<Error> Denied(RequestContext& context, const ratelimit_pb::AcquireResult& result) {
  const ratelimit_pb::LimitSubject subject = result.denied_subject();
  context.model_at_limit = subject == ratelimit_pb::LIMIT_SUBJECT_KEY_MODEL ||
                           subject == ratelimit_pb::LIMIT_SUBJECT_WORKSPACE_MODEL ||
                           subject == ratelimit_pb::LIMIT_SUBJECT_MODEL;
  Error error{ErrorId::kRateLimited};
  error.retry_after_ms = std::max<int64_t>(result.retry_after_ms(), 1);
  switch (result.denied_by()) {
    case ratelimit_pb::LIMIT_KIND_TOKENS:
      error.id = ErrorId::kTokenLimited;
      error.reason = Reason::kTokens;
      error.message =
          "The token rate limit" + WhoseLimit(result.denied_subject()) + " is exceeded.";
      break;
    case ratelimit_pb::LIMIT_KIND_CONCURRENCY:
      error.reason = Reason::kConcurrency;
      error.message =
          "Too many requests" + WhoseLimit(result.denied_subject()) + " run at the same time.";
      break;
    default:
      error.reason = Reason::kRequests;
      error.message =
          "The request rate limit" + WhoseLimit(result.denied_subject()) + " is exceeded.";
  }
  return Fail{std::move(error)};
}

}  // namespace

int64_t EstimateTotalTokens(const TokenBounds& bounds) {
  return bounds.prompt_estimate + std::min(bounds.output_upper, kExpectedOutputTokens);
}

Task<Result<void>> Admit(RequestContext& context, int64_t tokens) {
  const StageTimer timer(context.trace, Stage::kAdmit);
  const auth::v1::Key& key = *context.key;
  Worker& worker = context.worker;
  ratelimit_pb::AcquireItem item;
  if (!CollectLimits(key, context.model, item)) co_return Result<void>();
  // Later candidates use a new slot id: the release of the previous candidate's slot may still be
  // on its way.
  item.set_lease_id((context.admissions++ == 0 ? context.id : Id::New()).ToBytes());
  item.set_workspace_id(key.workspace_id());
  item.set_key_id(LineageOf(key));
  item.set_estimated_tokens(tokens);
  item.set_traceparent(TraceparentOf(context.trace, Stage::kAdmit));
  bool limits_concurrency = false;
  ForEachLimit(item, [&](ratelimit_pb::SubjectLimits& limits) {
    // The request is exempt: the token debt of other requests must not refuse it.
    if (tokens == 0) limits.clear_tokens_per_minute();
    limits_concurrency = limits_concurrency || limits.concurrent_requests() > 0;
  });
  // Created before the call: the limiter may grant the slot even if its response is lost.
  Slot slot(*worker.slots, RenewOf(item), limits_concurrency);
  auto answer = co_await worker.clients.limiter->Acquire(item);
  if (answer) {
    worker.local_limiter.Observe(item, *answer, worker.clock.MonotonicUs());
    context.limit_headers =
        MakeLimitHeaders(context.endpoint.family, *answer, worker.clock.WallUs());
    if (!answer->granted()) {
      slot.Disarm();
      co_return Denied(context, *answer);
    }
    // The limiter cannot reach its store. It has checked the rates against its share, but only this
    // loop knows its running requests.
    if (answer->local_share()) {
      worker.metrics.CountLimiterFallback();
      worker.local_limiter.ShareAmong(LimiterGateways::Get().count());
      const ratelimit_pb::AcquireResult local = worker.local_limiter.CheckSlots(item);
      if (!local.granted()) co_return Denied(context, local);
    }
    slot.KeepAlive();
    context.slot = std::move(slot);
    context.local_slot = worker.local_limiter.Take(item);
    co_return Result<void>();
  }
  // Neither fails open nor closed: this loop's share is enforced while the limiter is unreachable.
  worker.metrics.CountLimiterFallback();
  const int64_t now = worker.clock.MonotonicUs();
  if (now - worker.fallback_logged_us > kFallbackLogIntervalUs) {
    worker.fallback_logged_us = now;
    log::Warn("rate limiter unreachable; using local limits",
              {{"reason", answer.error().ToString()}});
  }
  worker.local_limiter.ShareAmong(LimiterGateways::Get().count());
  const ratelimit_pb::AcquireResult local = worker.local_limiter.Acquire(item, now);
  if (!local.granted()) co_return Denied(context, local);
  context.local_slot = worker.local_limiter.Take(item);
  co_return Result<void>();
}

}  // namespace tollgate::gateway
