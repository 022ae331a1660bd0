// Stage: upper and lower bounds on the tokens of a request (docs/design/ledger.md 4).
#pragma once

#include <cstdint>

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Fails with 400 context_length_exceeded when max_tokens cannot fit next to the smallest possible
// prompt. Sets context.bounds.
Result<void> BoundTokens(RequestContext& context);

// The expected size of a prompt that no tokenizer has counted. May exceed the context window.
int64_t EstimatePromptTokens(const PromptSize& prompt);

}  // namespace tollgate::gateway
