// AuthService (key lookups and the change stream, for gateways) and AuthAdminService (for the CLI
// and the dashboard). Handlers only submit work to the storage threads.
#pragma once

#include <atomic>
#include <memory>

#include "services/auth/rpc/auth_backend.h"

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace tollgate::auth {

class AuthRpc : public v1::AuthService::CallbackService {
 public:
  explicit AuthRpc(const BackendSlot& backend);

  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const v1::VerifyKeyRequest* request,
                                      v1::VerifyKeyResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchKeysResponse>* WatchKeys(
      grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) override;
  grpc::ServerUnaryReactor* ReadVersion(grpc::CallbackServerContext* context,
                                        const v1::ReadVersionRequest* request,
                                        v1::ReadVersionResponse* response) override;
  grpc::ServerUnaryReactor* ReportKeyUse(grpc::CallbackServerContext* context,
                                         const v1::ReportKeyUseRequest* request,
                                         v1::ReportKeyUseResponse* response) override;

 private:
  const BackendSlot& backend_;
  prometheus::Counter& found_;
  prometheus::Counter& unknown_;
  prometheus::Counter& failed_;
  prometheus::Histogram& seconds_;
  prometheus::Counter& version_reads_;
};

class AuthAdminRpc : public v1::AuthAdminService::CallbackService {
 public:
  explicit AuthAdminRpc(const BackendSlot& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* CreateWorkspace(grpc::CallbackServerContext* context,
                                            const v1::CreateWorkspaceRequest* request,
                                            v1::CreateWorkspaceResponse* response) override;
  grpc::ServerUnaryReactor* ListWorkspaces(grpc::CallbackServerContext* context,
                                           const v1::ListWorkspacesRequest* request,
                                           v1::ListWorkspacesResponse* response) override;
  grpc::ServerUnaryReactor* CreateKey(grpc::CallbackServerContext* context,
                                      const v1::CreateKeyRequest* request,
                                      v1::CreateKeyResponse* response) override;
  grpc::ServerUnaryReactor* ListKeys(grpc::CallbackServerContext* context,
                                     const v1::ListKeysRequest* request,
                                     v1::ListKeysResponse* response) override;
  grpc::ServerUnaryReactor* SetKeyState(grpc::CallbackServerContext* context,
                                        const v1::SetKeyStateRequest* request,
                                        v1::SetKeyStateResponse* response) override;
  grpc::ServerUnaryReactor* SetKeyQuota(grpc::CallbackServerContext* context,
                                        const v1::SetKeyQuotaRequest* request,
                                        v1::SetKeyQuotaResponse* response) override;
  grpc::ServerUnaryReactor* ListAuditEvents(grpc::CallbackServerContext* context,
                                            const v1::ListAuditEventsRequest* request,
                                            v1::ListAuditEventsResponse* response) override;

 private:
  const BackendSlot& backend_;
};

}  // namespace tollgate::auth
