#include "gateway/pipeline/admit.h"

#include <algorithm>
#include <utility>

#include "common/observability/log.h"
#include "gateway/pipeline/limit_headers.h"
#include "gateway/pipeline/limits.h"

namespace tollgate::gateway {

namespace {

namespace pb = ratelimit::v1;

// Output tokens that the token limits are charged for before the real number is known
// (docs/design/limits.md).
constexpr int64_t kExpectedOutputTokens = 1024;
// Least time between two log lines about an outage of the limiter.
constexpr int64_t kFallbackLogIntervalUs = 10'000'000;

Fail<Error> Denied(RequestContext& context, const pb::AcquireResult& result) {
  Error error{ErrorId::kRateLimited};
  error.retry_after_ms = std::max<int64_t>(result.retry_after_ms(), 1);
  switch (result.denied_by()) {
    case pb::LIMIT_KIND_TOKENS:
      error.id = ErrorId::kTokenLimited;
      error.message = "The token rate limit is exceeded.";
      context.worker.metrics.CountDenial("tokens");
      break;
    case pb::LIMIT_KIND_CONCURRENCY:
      error.message = "Too many requests run at the same time.";
      context.worker.metrics.CountDenial("concurrency");
      break;
    default:
      error.message = "The request rate limit is exceeded.";
      context.worker.metrics.CountDenial("requests");
  }
  return Fail{std::move(error)};
}

}  // namespace

int64_t EstimateTotalTokens(const TokenBounds& bounds) {
  return bounds.prompt_estimate + std::min(bounds.output_upper, kExpectedOutputTokens);
}

Task<Result<void>> Admit(RequestContext& context, int64_t tokens) {
  const auth::v1::Key& key = *context.key;
  if (IsUnlimited(key.key_limits()) && IsUnlimited(key.workspace_limits()))
    co_return Result<void>();
  Worker& worker = context.worker;
  pb::AcquireItem item;
  item.set_lease_id(context.id.ToBytes());
  item.set_workspace_id(key.workspace_id());
  item.set_key_id(key.key_id());
  CopyLimits(key.key_limits(), *item.mutable_key_limits());
  CopyLimits(key.workspace_limits(), *item.mutable_workspace_limits());
  item.set_estimated_tokens(tokens);
  if (tokens == 0) {  // exempt: a token debt of other requests must not refuse this one
    item.mutable_key_limits()->clear_tokens_per_minute();
    item.mutable_workspace_limits()->clear_tokens_per_minute();
  }
  pb::ReleaseItem release;
  release.set_lease_id(item.lease_id());
  release.set_workspace_id(key.workspace_id());
  release.set_key_id(key.key_id());
  const bool limits_concurrency = key.key_limits().concurrent_requests() > 0 ||
                                  key.workspace_limits().concurrent_requests() > 0;
  // Held before the call: the limiter may grant the lease even if its response is lost.
  Lease lease(*worker.leases, std::move(release), limits_concurrency);
  auto answer = co_await worker.clients.limiter->Acquire(item);
  if (answer) {
    context.limit_headers = MakeLimitHeaders(context.endpoint.family, *answer);
    if (!answer->granted()) {
      lease.Disarm();
      co_return Denied(context, *answer);
    }
    context.lease = std::move(lease);
    co_return Result<void>();
  }
  // Fail neither open nor closed: enforce this loop's share while the limiter is unreachable.
  worker.metrics.CountLimiterFallback();
  const int64_t now = worker.clock.MonotonicUs();
  if (now - worker.fallback_logged_us > kFallbackLogIntervalUs) {
    worker.fallback_logged_us = now;
    log::Warn("rate limiter unreachable; using local limits",
              {{"reason", answer.error().ToString()}});
  }
  const pb::AcquireResult local = worker.local_limiter.Acquire(item, now);
  if (!local.granted()) co_return Denied(context, local);
  context.local_slot = LocalSlot(worker.local_limiter, key.workspace_id(), key.key_id());
  co_return Result<void>();
}

}  // namespace tollgate::gateway
