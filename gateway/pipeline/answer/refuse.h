// Error responses for requests whose response has not begun: rendered in the endpoint's envelope,
// counted, and logged if the status is 5xx.
#pragma once

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/pipeline/request_context.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Counts and logs the refusal, notes why for the access log, and builds its response.
HttpResponse MakeRefusal(Worker& worker, HttpRequest& request, const Endpoint& endpoint,
                         const Error& error);

// limit_headers: sent with a 429 only.
Task<void> RefuseRequest(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error,
                         Headers limit_headers = {});

// Refuses a request of the pipeline. Releases nothing.
Task<void> Refuse(RequestContext& context, const Error& error);

// Releases the hold and the lease before it refuses, so that they are free when the client has read
// the error.
Task<void> ReleaseAndRefuse(RequestContext& context, Error error);

// Returns true if the request continues after a stage. Otherwise it has been refused, or the client
// has disconnected and the context's guards release what was taken.
Task<bool> ContinueOrRefuse(RequestContext& context, const Result<void>& stage);

}  // namespace tollgate::gateway
