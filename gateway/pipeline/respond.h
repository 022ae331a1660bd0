// Successful responses of the pipeline. Refusals: refuse.h.
#pragma once

#include <string>

#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// A new public id and the time, for the response of this request.
ResponseStamp MakeResponseStamp(const RequestContext& context);

// Sends a 200 with a JSON body and the rate-limit headers.
Task<void> SendJson(RequestContext& context, std::string body);

}  // namespace tollgate::gateway
