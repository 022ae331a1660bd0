// Refusing a request of an endpoint that runs no pipeline: rendered, counted, and logged when the
// fault is ours.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/pipeline/worker.h"

namespace tollgate::gateway {

Task<void> RefusePlain(Worker& worker, Exchange& exchange, const Endpoint& endpoint, Error error);

}  // namespace tollgate::gateway
