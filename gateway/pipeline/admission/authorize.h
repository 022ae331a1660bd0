// Stage: holds the workspace's credit for the prompt bound and a first slice of output (decision
// 2).
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Opens the hold and sets context.hold and context.authorization. Where the workspace has leases,
// sets context.hold and context.admitted_by_router instead. Fails with 402, 429 while other
// requests hold the credit, or 503 when billing is unreachable.
Task<Result<void>> AuthorizeSpend(RequestContext& context);
// Opens the hold at the ledger without trying leases, for a request that no lease of its router
// covers.
Task<Result<void>> AuthorizeAtLedger(RequestContext& context);

}  // namespace tollgate::gateway
