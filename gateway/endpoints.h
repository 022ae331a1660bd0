// The table of public endpoints.
#pragma once

#include <functional>

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

using WorkerForLoop = std::function<Worker&(Loop&)>;

EndpointTable MakeEndpoints(WorkerForLoop worker_for_loop);

}  // namespace tollgate::gateway
