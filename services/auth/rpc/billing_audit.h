// billing's audit entries, read from its admin address.
#pragma once

#include <memory>

#include "common/rpc/replicas.h"
#include "common/runtime/loop.h"
#include "services/auth/storage/audit_copy.h"

namespace tollgate::auth {

// Its calls wait on the calling thread, which must be none of the loops. The replicas live on the
// loop, and must outlive it.
AuditSource BillingAuditSource(Loop& loop, std::shared_ptr<rpc::Replicas> replicas);

}  // namespace tollgate::auth
