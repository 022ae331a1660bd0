// Stage: checks that the model supports this kind of request and its media.
#pragma once

#include "common/error/error.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Fails with 400 naming `model`, or the prompt's field for media sent to a text-only model.
Result<void> CheckCapability(RequestContext& context);

}  // namespace tollgate::gateway
