// The order of the stages (decision 16); run.cc is the table of contents of this folder.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/request_context.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// The handler of every inference endpoint: runs all stages and sends the response.
Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint);

// Stages 1 to 5, which depend only on the request, its key and the catalog. Takes nothing from
// limits or credit.
Task<Result<void>> Validate(RequestContext& context);

}  // namespace tollgate::gateway
