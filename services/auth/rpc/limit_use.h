// What is left of a workspace's limits (LimitService.GetLimitUsage).
#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>

#include "services/auth/rpc/auth_backend.h"
#include "tollgate/admin/v1/limits.pb.h"

namespace tollgate::auth {

// Asks the limiter and ends the call, on any thread. response lives until then.
void AskForUse(const Peers& peers, const std::string& workspace,
               const AuthStore::WorkspaceLimits& limits, grpc::ServerUnaryReactor* reactor,
               admin::v1::LimitUsage& response);

}  // namespace tollgate::auth
