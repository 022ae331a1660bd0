// Successful responses of the pipeline. Refusals: refuse.h.
#pragma once

#include <string>
#include <string_view>

#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// A new public id and the time, for the response of this request.
ResponseStamp MakeResponseStamp(const RequestContext& context);

// The model that answers, where several could: callers may not see it in a body before its end.
inline constexpr std::string_view kModelHeader = "x-tollgate-model";

// The rate-limit headers, kModelHeader and kDebugHeader.
Headers AnswerHeaders(const RequestContext& context);

// Says that the answer ends early because the credit or a cap is used up: a header, and in a stream
// a comment before its end. Clients see `length` or `max_tokens` otherwise (decision 4).
inline constexpr char kCutByCreditHeader[] = "x-tollgate-cut-by-credit";

// Sends a 200 with a JSON body and AnswerHeaders.
Task<void> SendJson(RequestContext& context, std::string body, bool cut_by_credit = false);

}  // namespace tollgate::gateway
