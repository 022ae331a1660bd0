// Moves a request whose router was lost to another one (decision 52).
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Starts the next try, after billing has taken the hold from the lost router: from then on, what
// that router reports is refused. False: it cannot be moved (nothing changed but the tries at
// billing), and the request has to be refused. At most once per request.
Task<bool> MoveToAnotherRouter(RequestContext& context);

}  // namespace tollgate::gateway
