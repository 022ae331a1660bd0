// The spending limit of a request: its hold, or the lease that admitted it.
#pragma once

#include "common/money/money.h"
#include "common/runtime/task.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

bool IsEmbedding(const inference::v1::GenerateRequest& request);
// The most output tokens of a choice, also where the engine is told none; 0: unknown.
int64_t TokensPerChoice(const inference::v1::GenerateRequest& request);
// The rates of the request's price.
Rates RatesOf(const inference::v1::GenerateRequest& request);
// The options of the request's hold.
HoldKeeper::Options HoldOptions(const RunContext& context);

// Admits a request that came without a hold from a lease. Sets context.ticket, and the hold in the
// request. Returns false if no lease covers it (docs/adr/0042).
Task<bool> AdmitFromLease(RunContext& context);
// The End of a request that no lease covers.
inference::v1::End NoLease();

}  // namespace tollgate::inference_router
