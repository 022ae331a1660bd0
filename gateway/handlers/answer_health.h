// GET /healthz: whether this gateway takes requests, for load balancers and probes. Public, says
// nothing else, and asks no other process.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// 200 while accepting, 503 once the process is stopping.
Task<void> AnswerHealth(bool accepting, Exchange& exchange, const Endpoint& endpoint);

}  // namespace tollgate::gateway
