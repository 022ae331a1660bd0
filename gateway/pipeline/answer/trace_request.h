// The request's trace in the pipeline (gateway/edge/request_trace.h). For a request that is not
// traced, only the caller's trace context is passed on.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Passes on the span that is the parent of the router's span, or the caller's trace context when
// requests are not traced.
void PassTraceOn(const RequestContext& context, inference::v1::GenerateRequest& request);
// Call when the request is about to be sent to a router.
void BeginRoute(RequestContext& context);
// Call when the router's answer has ended.
void RecordUsage(RequestContext& context, const inference::v1::End& end);
// Call when a choice has ended; the last one counts.
void RecordFinish(RequestContext& context, inference::v1::FinishReason reason);

}  // namespace tollgate::gateway
