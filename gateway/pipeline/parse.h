// Stage: parses the body as JSON and translates it with the endpoint's surface.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Parses on the loop. Fails with 400, sets context.canonical and frees the request's body.
Result<void> Parse(RequestContext& context);
// Does the same on a thread of the worker's pool, for a body that would block the loop. Fails also
// with 503 when too many bodies wait for these threads.
Task<Result<void>> ParseBesideLoop(RequestContext& context);
inline bool IsParsedBesideLoop(const RequestContext& context) {
  return context.exchange.request().body.size() > kMaxBytesDecodedOnLoop;
}

}  // namespace tollgate::gateway
