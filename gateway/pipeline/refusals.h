// The bound on requests that end free after they have taken a hold (ADR 0016), for keys without a
// limit on requests.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Refuses the request while too many of its key have ended free.
Result<void> CheckRefusals(RequestContext& context);
// The request ends with this error, and nothing is charged.
void CountRefusal(RequestContext& context, const Error& error);
// The caller left before anything of an answer came. may_be_charged: a router has the request, and
// charges its prompt if an engine took it.
void CountLeave(RequestContext& context, bool may_be_charged);
// The request was answered and charged.
void CountPaid(RequestContext& context);

}  // namespace tollgate::gateway
