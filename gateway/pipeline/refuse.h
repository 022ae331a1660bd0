// Error responses for requests whose response has not begun: rendered in the endpoint's envelope,
// counted, and logged when the status is 5xx.
#pragma once

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/pipeline/request_context.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Counts and logs the refusal, and makes its response.
HttpResponse MakeRefusal(Worker& worker, const HttpRequest& request, const Endpoint& endpoint,
                         const Error& error);

// limit_headers: sent with a 429 only.
Task<void> RefuseRequest(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error,
                         Headers limit_headers = {});

// The same for a request of the pipeline. Releases nothing.
Task<void> Refuse(RequestContext& context, const Error& error);

// Releases the hold and the lease, then refuses: when the client reads the error, its next request
// finds both free.
Task<void> ReleaseAndRefuse(RequestContext& context, Error error);

// What follows a stage: true if the request goes on. Otherwise it has been refused, or the client
// has disconnected and the context's guards release what was taken.
Task<bool> ContinueOrRefuse(RequestContext& context, const Result<void>& stage);

}  // namespace tollgate::gateway
