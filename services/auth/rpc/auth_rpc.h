// AuthService and AuthAdminService. Handlers only hand over to the storage threads.
#pragma once

#include <atomic>
#include <memory>

#include "services/auth/rpc/auth_core.h"

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace tollgate::auth {

// Null until the service has started and after it has stopped: calls are unavailable then.
using CoreSlot = std::atomic<AuthCore*>;

class AuthRpc : public v1::AuthService::CallbackService {
 public:
  explicit AuthRpc(const CoreSlot& core);

  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const v1::VerifyKeyRequest* request,
                                      v1::VerifyKeyResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchKeysResponse>* WatchKeys(
      grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) override;

 private:
  const CoreSlot& core_;
  prometheus::Counter& found_;
  prometheus::Counter& unknown_;
  prometheus::Counter& failed_;
  prometheus::Histogram& seconds_;
};

class AuthAdminRpc : public v1::AuthAdminService::CallbackService {
 public:
  explicit AuthAdminRpc(const CoreSlot& core) : core_(core) {}

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
  grpc::ServerUnaryReactor* ListAuditEvents(grpc::CallbackServerContext* context,
                                            const v1::ListAuditEventsRequest* request,
                                            v1::ListAuditEventsResponse* response) override;

 private:
  const CoreSlot& core_;
};

}  // namespace tollgate::auth
