// The services of tollgate.admin.v1 that auth serves: workspaces, keys and the audit log. Handlers
// only submit work to the storage threads.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "services/auth/rpc/auth_backend.h"

namespace tollgate::auth {

std::unique_ptr<grpc::Service> MakeWorkspaceAdmin(const BackendSlot& backend);
std::unique_ptr<grpc::Service> MakeKeyAdmin(const BackendSlot& backend);
std::unique_ptr<grpc::Service> MakeAuditAdmin(const BackendSlot& backend);
// Calls of the dashboard only.
std::unique_ptr<grpc::Service> MakeFrontRpc(const BackendSlot& backend);

}  // namespace tollgate::auth
