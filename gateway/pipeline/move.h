// Moves a request whose router was lost to another one (decision 52).
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Starts the next try, after billing has taken the hold from the lost router: from then on, what
// that router reports is refused. If that router had settled an answer that is not streamed, the
// charge is given back and the request gets another id and hold. False: it cannot be moved, and has
// to be refused. At most once per request.
Task<bool> MoveToAnotherRouter(RequestContext& context);

}  // namespace tollgate::gateway
