// Stage: finds the models that may answer. Each is checked as if it were the only one: catalog
// entry, capability, the caller's terms, window (decision 66).
#pragma once

#include <cstddef>

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// The candidates are the model that the request names, then the others of `models`, or otherwise
// the fall-backs that the catalog lists for the first model. Models that are not serving, too small
// for the request, or excluded by the caller's `provider` terms are skipped; so are catalog
// fall-backs that this key may not use. Any other fault of a listed model fails the request with an
// error that names the item. If no candidate is left, fails with the first model's error. Sets
// context.candidates and makes the first one current.
Result<void> FindCandidates(RequestContext& context);

bool HasNextCandidate(const RequestContext& context);

// Makes a candidate the current one: sets the model, its bounds, and the answer's `model`.
void UseCandidate(RequestContext& context, size_t index);

}  // namespace tollgate::gateway
