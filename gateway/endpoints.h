// The endpoint table: which surface answers which path.
#pragma once

#include <functional>

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

using WorkerOf = std::function<Worker&(Loop&)>;

EndpointTable MakeEndpoints(WorkerOf worker_of);

}  // namespace tollgate::gateway
