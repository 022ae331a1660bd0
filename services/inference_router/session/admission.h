// What a session's request may spend: its hold, or a lease that it is admitted from.
#pragma once

#include "common/money/money.h"
#include "common/runtime/task.h"
#include "services/inference_router/session/session_context.h"

namespace tollgate::inference_router {

bool IsEmbedding(const inference::v1::GenerateRequest& request);
// Of the request's price.
Rates RatesOf(const inference::v1::GenerateRequest& request);
// Of the hold, as the request says it.
HoldKeeper::Options HoldOptions(const SessionContext& context);

// Of a request that came without a hold: sets context.ticket, and in the request what its hold
// would say. False: no lease covers it (docs/adr/0042).
Task<bool> AdmitFromLease(SessionContext& context);
// The end of such a request.
inference::v1::End NoLease();

}  // namespace tollgate::inference_router
