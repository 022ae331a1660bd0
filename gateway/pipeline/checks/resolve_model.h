// Stage: finds the catalog entry of the requested model and checks that this key may use it.
#pragma once

#include <string>

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Fails with 404 for an unknown model, 401 for a private model of another workspace, 403
// model_blocked, or 503 when the model is not serving or no catalog has arrived yet. Sets
// context.model and context.unlisted.
Result<void> ResolveModel(RequestContext& context, const std::string& id);

}  // namespace tollgate::gateway
