// GET /healthz: whether this gateway accepts requests, for load balancers and probes. Public.
// Reports nothing else and calls no other process.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// 200 while accepting, 503 once the process is stopping.
Task<void> AnswerHealth(bool accepting, Exchange& exchange, const Endpoint& endpoint);

}  // namespace tollgate::gateway
