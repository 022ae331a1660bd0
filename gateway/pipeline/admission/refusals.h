// Bounds the requests that take a hold and then end without a charge (ADR 0016), for keys without a
// request limit.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Refuses the request while too many requests of its key have ended without a charge.
Result<void> CheckRefusals(RequestContext& context);
// Counts a request that ends with this error, without a charge.
void CountRefusal(RequestContext& context, const Error& error);
// Counts a caller that left before any part of the answer arrived. may_be_charged: a router has the
// request, and charges the prompt if an engine took it.
void CountLeave(RequestContext& context, bool may_be_charged);
// Counts an answered and charged request.
void CountPaid(RequestContext& context);

}  // namespace tollgate::gateway
