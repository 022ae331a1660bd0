// billing's audit entries, read from its admin address.
#pragma once

#include <memory>

#include "common/rpc/replicas.h"
#include "common/runtime/loop.h"
#include "services/auth/storage/audit_copy.h"

namespace tollgate::auth {

// Calls block the calling thread, which must not be a loop's. The replicas live on the loop, and
// the loop must outlive them.
AuditSource BillingAuditSource(Loop& loop, std::shared_ptr<rpc::Replicas> replicas);

}  // namespace tollgate::auth
