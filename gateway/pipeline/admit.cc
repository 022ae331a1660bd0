#include <algorithm>

#include "common/observability/log.h"
#include "gateway/pipeline/limit_headers.h"
#include "gateway/pipeline/limits.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

namespace pb = ratelimit::v1;

// Output that a request is expected to make, until it has made it (reliability.md section 2).
constexpr int64_t kExpectedOutput = 1024;
// An outage is told once in a while, not once a request.
constexpr int64_t kFallbackLogUs = 10'000'000;

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

int64_t ExpectedTokens(const TokenBounds& bounds) {
  return bounds.prompt_estimate + std::min(bounds.output_upper, kExpectedOutput);
}

Task<Result<void>> Admit(RequestContext& context, int64_t tokens) {
  const auth::v1::Key& key = *context.key;
  if (Unlimited(key.key_limits()) && Unlimited(key.workspace_limits())) co_return Result<void>();
  Worker& worker = context.worker;
  pb::AcquireItem item;
  item.set_lease_id(context.id.ToBytes());
  item.set_workspace_id(key.workspace_id());
  item.set_key_id(key.key_id());
  CopyLimits(key.key_limits(), *item.mutable_key_limits());
  CopyLimits(key.workspace_limits(), *item.mutable_workspace_limits());
  item.set_estimated_tokens(tokens);
  if (tokens == 0) {  // others' debts are no reason to refuse what takes none
    item.mutable_key_limits()->clear_tokens_per_minute();
    item.mutable_workspace_limits()->clear_tokens_per_minute();
  }
  pb::ReleaseItem release;
  release.set_lease_id(item.lease_id());
  release.set_workspace_id(key.workspace_id());
  release.set_key_id(key.key_id());
  // From here on it may have been taken, whatever becomes of the answer.
  const bool slots = key.key_limits().concurrent_requests() > 0 ||
                     key.workspace_limits().concurrent_requests() > 0;
  Lease lease(*worker.leases, std::move(release), slots);
  auto answer = co_await worker.clients.limiter->Acquire(item);
  if (answer) {
    context.limit_headers = LimitHeaders(context.endpoint.family, *answer);
    if (!answer->granted()) {
      lease.Forget();
      co_return Denied(context, *answer);
    }
    context.lease = std::move(lease);
    co_return Result<void>();
  }
  // Neither open nor closed: this loop's share decides while the limiter is away.
  worker.metrics.CountLimiterFallback();
  const int64_t now = worker.clock.MonotonicUs();
  if (now - worker.fallback_logged_us > kFallbackLogUs) {
    worker.fallback_logged_us = now;
    log::Warn("limiter away, the local share decides", {{"reason", answer.error().ToString()}});
  }
  const pb::AcquireResult local = worker.local_limiter.Acquire(item, now);
  if (!local.granted()) co_return Denied(context, local);
  context.local_slot = LocalSlot(worker.local_limiter, key.workspace_id(), key.key_id());
  co_return Result<void>();
}

}  // namespace tollgate::gateway
