// Stage: forwards the router's events to the client, as a stream or as one body.
#pragma once

#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Handles its own errors because the status 200 may already have been sent. Releases the lease and
// hands the hold over to the router.
Task<void> Relay(RequestContext& context);

}  // namespace tollgate::gateway
