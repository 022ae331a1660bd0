// The table of public endpoints.
#pragma once

#include <functional>

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

using WorkerForLoop = std::function<Worker&(Loop&)>;

// accepting: whether the process takes requests, for /healthz. Called on every loop.
EndpointTable MakeEndpoints(WorkerForLoop worker_for_loop, std::function<bool()> accepting);

}  // namespace tollgate::gateway
