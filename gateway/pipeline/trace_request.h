// The request's trace in the pipeline (gateway/edge/request_trace.h). Does nothing for a request
// that is not traced, but pass on what its caller sent.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// The span that the router's is a child of, or the caller's trace where requests are not traced.
void PassTraceOn(const RequestContext& context, inference::v1::GenerateRequest& request);
// The request is about to be sent to a router.
void BeginRoute(RequestContext& context);
// The router's answer has ended.
void RecordUsage(RequestContext& context, const inference::v1::End& end);
// A choice has ended; the last one counts.
void RecordFinish(RequestContext& context, inference::v1::FinishReason reason);

}  // namespace tollgate::gateway
