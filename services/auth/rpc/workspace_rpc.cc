#include "services/auth/admin/workspace_admin.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/admin_run.h"
#include "tollgate/admin/v1/workspaces.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

class WorkspaceRpc : public pb::WorkspaceService::CallbackService {
 public:
  explicit WorkspaceRpc(const BackendSlot& backend) : backend_(backend) {}

  // The wallet is opened after the workspace is stored. A call that fails in between is repeated
  // with its request_id, and opens it then.
  ServerUnaryReactor* CreateWorkspace(CallbackServerContext* context,
                                      const pb::CreateWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return RefuseAdmin(context, caller.error());
    AuthBackend* const backend = backend_.load();
    if (!backend) {
      return RefuseAdmin(context, admin::FromError(Unavailable("auth is not running").error));
    }
    if (!caller->installation && !caller->platform_operator && !backend->self_service()) {
      return RefuseAdmin(
          context, admin::PermissionDenied("PERMISSION_DENIED",
                                           "workspaces are made by operators of the platform here")
                       .error);
    }
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool posted = backend->workers().Submit(
        [backend, reactor, request, response, caller = *std::move(caller)] {
          auto made = WorkspaceAdmin(backend->store()).Create(caller, *request);
          CountChange("workspace_create", made.ok());
          if (!made) return reactor->Finish(FinishStatus(made.error()));
          backend->feed().Wake();
          *response = *std::move(made);
          backend->OpenWallet(
              response->name().substr(response->name().find('/') + 1),
              [reactor](const admin::AdminResult<void>& opened) {
                reactor->Finish(opened ? grpc::Status::OK : FinishStatus(opened.error()));
              });
        });
    if (!posted) {
      reactor->Finish(
          FinishStatus(admin::FromError(Unavailable("too many calls are queued").error)));
    }
    return reactor;
  }
  ServerUnaryReactor* GetWorkspace(CallbackServerContext* context,
                                   const pb::GetWorkspaceRequest* request,
                                   pb::Workspace* response) override {
    return RunAdmin(backend_, context, request, response,
                    [request](AuthBackend& backend, const admin::Caller&) {
                      return WorkspaceAdmin(backend.store()).Get(*request);
                    });
  }
  ServerUnaryReactor* ListWorkspaces(CallbackServerContext* context,
                                     const pb::ListWorkspacesRequest* request,
                                     pb::ListWorkspacesResponse* response) override {
    return RunAdmin(backend_, context, request, response,
                    [request](AuthBackend& backend, const admin::Caller& caller) {
                      return WorkspaceAdmin(backend.store()).List(caller, *request);
                    });
  }
  ServerUnaryReactor* UpdateWorkspace(CallbackServerContext* context,
                                      const pb::UpdateWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    return ChangeAdmin(backend_, context, request, response, "workspace_update",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return WorkspaceAdmin(backend.store()).Update(caller, *request);
                       });
  }
  ServerUnaryReactor* CloseWorkspace(CallbackServerContext* context,
                                     const pb::CloseWorkspaceRequest* request,
                                     pb::Workspace* response) override {
    return ChangeAdmin(backend_, context, request, response, "workspace_close",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return WorkspaceAdmin(backend.store()).Close(caller, *request);
                       });
  }
  ServerUnaryReactor* ReopenWorkspace(CallbackServerContext* context,
                                      const pb::ReopenWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    return ChangeAdmin(backend_, context, request, response, "workspace_reopen",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return WorkspaceAdmin(backend.store()).Reopen(caller, *request);
                       });
  }

 private:
  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkspaceAdmin(const BackendSlot& backend) {
  return std::make_unique<WorkspaceRpc>(backend);
}

}  // namespace tollgate::auth
