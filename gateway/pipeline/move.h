// Moves a request to another router after its router was lost (decision 52).
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Starts the next attempt after billing has taken the hold from the lost router: from then on,
// billing refuses that router's reports. If that router had settled an answer that is not streamed,
// the charge is refunded and the request gets a new id and hold. Returns false if the request
// cannot be moved and must be refused. Moves a request at most once.
Task<bool> MoveToAnotherRouter(RequestContext& context);

}  // namespace tollgate::gateway
