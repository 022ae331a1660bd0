// LimitService of the admin API: limits of workspaces, of keys for single models, and plans.
#pragma once

#include <memory>

#include "services/auth/rpc/auth_rpc.h"

namespace grpc {
class Service;
}

namespace tollgate::auth {

// backend must outlive the service. While it holds null, calls get UNAVAILABLE.
std::unique_ptr<grpc::Service> MakeLimitAdmin(const BackendSlot& backend);

}  // namespace tollgate::auth
