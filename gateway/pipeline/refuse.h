// Refusing a request that has not begun its answer: rendered in its family's manner, counted, and
// logged when the fault is ours.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// limit_headers: told when a limit is the reason.
Task<void> RefuseRequest(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error,
                         Headers limit_headers = {});

}  // namespace tollgate::gateway
