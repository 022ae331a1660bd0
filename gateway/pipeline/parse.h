// Stage: the body, parsed as JSON and translated by the endpoint's surface.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Both fail with 400, set context.canonical and free the request's body.
Result<void> Parse(RequestContext& context);
// For a body that would hold the loop up: the same on a thread of the worker's pool. Fails with 503
// when too many bodies wait for these threads.
Task<Result<void>> ParseBesideLoop(RequestContext& context);
inline bool IsParsedBesideLoop(const RequestContext& context) {
  return context.exchange.request().body.size() > kMaxBytesDecodedOnLoop;
}

}  // namespace tollgate::gateway
