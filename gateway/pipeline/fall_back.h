// From one candidate to the next (decision 66): what is taken for a model is taken for the one that
// is tried, and given back before another one is.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Stages: limits and hold of the first candidate that its own limits admit. The hold covers the
// dearest of those that are left. Fails like Admit and AuthorizeSpend, with the error of the last
// candidate.
Task<Result<void>> AdmitAndAuthorize(RequestContext& context);

// Stage: where max_tokens was lowered and may not fit, the prompt is counted; moves on to the next
// candidate while it does not fit. 400 context_length_exceeded when it fits none.
Task<Result<void>> CheckPromptFits(RequestContext& context);

// Moves on to the next candidate that is admitted and that the prompt fits, after the current one
// has failed with `error` before anything was sent to the caller: the ledger knows the new one as
// the next try of the same request. False: there is none, and `error` is what the caller gets;
// limits are given back, the hold is as it was.
Task<bool> FallBack(RequestContext& context, Error& error);

}  // namespace tollgate::gateway
