// Stage: the body, parsed as JSON and translated by the endpoint's surface.
#pragma once

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Fails with 400. Sets context.canonical and frees the request's body.
Result<void> Parse(RequestContext& context);

}  // namespace tollgate::gateway
