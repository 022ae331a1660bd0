// Moves from one candidate to the next (decision 66). Limits are taken for the current candidate
// and given back before the next one is tried.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Stages: takes limits and hold for the first candidate that its own limits admit. The hold covers
// the most expensive of the remaining candidates. Fails like Admit and AuthorizeSpend, with the
// error of the last candidate.
Task<Result<void>> AdmitAndAuthorize(RequestContext& context);

// Stage: counts the prompt if max_tokens was lowered and may not fit, and moves on to the next
// candidate while it does not fit. Fails with 400 context_length_exceeded when it fits none.
Task<Result<void>> CheckPromptFits(RequestContext& context);

// Moves on to the next candidate that its limits admit and that the prompt fits, after the current
// one has failed with `error` before anything was sent to the caller. The ledger knows the new
// candidate as the next attempt of the same request. Returns false if there is none: the caller
// gets `error`, limits are given back, and the hold is unchanged.
Task<bool> FallBack(RequestContext& context, Error& error);

}  // namespace tollgate::gateway
