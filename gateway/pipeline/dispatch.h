// Stage: hands the request to an inference router.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Sets context.generation. Failures arrive with the first event (relay.h).
void Dispatch(RequestContext& context);

}  // namespace tollgate::gateway
