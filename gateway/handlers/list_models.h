// The handler of GET /v1/models and its alias.
#pragma once

#include "common/runtime/task.h"
#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

Task<void> ListModels(Worker& worker, Exchange& exchange, const Endpoint& endpoint);

}  // namespace tollgate::gateway
