// Stage: the models that may answer, each checked as if it were asked alone: catalog entry,
// capability, the caller's terms, window (decision 66).
#pragma once

#include <cstddef>

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// The model that the request names, then the others of `models`, or else the fall-backs that the
// catalog has for the first one. A model that is not serving, too small for the request, or outside
// of the caller's `provider` terms is left out; so is one of the catalog's that this key may not
// use. Any other fault of a listed model fails the request, naming the item. Fails with the first
// model's error when none is left. Sets context.candidates, and the first one as the current.
Result<void> FindCandidates(RequestContext& context);

bool HasNextCandidate(const RequestContext& context);

// Makes it the current one: its model, its bounds, and the answer's `model`.
void UseCandidate(RequestContext& context, size_t index);

}  // namespace tollgate::gateway
