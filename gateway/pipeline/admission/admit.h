// Stage: enforces the rate limits of the key and its workspace.
#pragma once

#include <cstdint>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Takes a slot from the rate limiter, or a local slot while the limiter is unreachable. Fails with
// 429. tokens: what the token limits are charged now; 0 exempts the request from them. Sets
// context.limit_headers and context.slot or context.local_slot.
Task<Result<void>> Admit(RequestContext& context, int64_t tokens);

// The expected number of tokens of a generation, prompt and output, before it has run.
int64_t EstimateTotalTokens(const TokenBounds& bounds);

}  // namespace tollgate::gateway
