// Stage: a hold on the workspace's credit for the prompt bound and a first slice of output
// (decision 2).
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Fails with 402, 429 while other requests hold the credit, or 503 when billing is unreachable.
// The hold that the request needs.
billing::v1::AuthorizeItem MakeAuthorizeItem(const RequestContext& context);
// Sets context.hold and context.authorization; or, where the workspace has leases, context.hold and
// context.admitted_by_router.
Task<Result<void>> AuthorizeSpend(RequestContext& context);
// The same without a look at leases: of a request that no lease of its router covers.
Task<Result<void>> AuthorizeAtLedger(RequestContext& context);

}  // namespace tollgate::gateway
