// Successful responses of the pipeline. Refusals: refuse.h.
#pragma once

#include <string>
#include <string_view>

#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// A new public id and the current time for the response.
ResponseStamp MakeResponseStamp(const RequestContext& context);

// Names the model that answers, where several could: in a body callers may see it only at the end.
inline constexpr std::string_view kModelHeader = "x-tollgate-model";

// The rate-limit headers, kModelHeader and kDebugHeader.
Headers AnswerHeaders(const RequestContext& context);

// Says that the answer ends early because the credit or a cap is used up: a header, and in a stream
// a comment before its end. Otherwise clients see only `length` or `max_tokens` (decision 4).
inline constexpr char kCutByCreditHeader[] = "x-tollgate-cut-by-credit";

// Sends a 200 with a JSON body and AnswerHeaders.
Task<void> SendJson(RequestContext& context, std::string body, bool cut_by_credit = false);

}  // namespace tollgate::gateway
