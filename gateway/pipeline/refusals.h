// The bound on refused requests that have taken a hold (ADR 0016), for keys without a limit on
// requests.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Refuses the request while too many of its key were refused.
Result<void> CheckRefusals(RequestContext& context);
// The request ends with this error, and nothing is charged.
void CountRefusal(RequestContext& context, const Error& error);
// The request was answered and charged.
void CountPaid(RequestContext& context);

}  // namespace tollgate::gateway
