#include "gateway/pipeline/refusals.h"

namespace tollgate::gateway {
namespace {

bool IsBounded(const RequestContext& context) {
  const auth::v1::Key& key = *context.key;
  return key.key_limits().requests_per_minute() > 0 ||
         key.workspace_limits().requests_per_minute() > 0;
}

}  // namespace

Result<void> CheckRefusals(RequestContext& context) {
  if (IsBounded(context)) return {};
  Worker& worker = context.worker;
  const int64_t wait_ms = worker.refusals.WaitMs(context.key->key_id(), worker.clock.MonotonicUs());
  if (wait_ms == 0) return {};
  worker.metrics.CountDenial("refusals");
  Error error{ErrorId::kRateLimited};
  error.message = "Too many requests of this key were refused as invalid.";
  error.retry_after_ms = wait_ms;
  return Fail{std::move(error)};
}

void CountRefusal(RequestContext& context, const Error& error) {
  // Not those of a model at capacity: the caller cannot do better.
  const int status = error.row().http_status;
  if (status >= 500 || status == 429 || !context.hold.held() || IsBounded(context)) return;
  context.worker.refusals.Take(context.key->key_id(), context.worker.clock.MonotonicUs());
}

void CountPaid(RequestContext& context) { context.worker.refusals.GiveBack(context.key->key_id()); }

}  // namespace tollgate::gateway
