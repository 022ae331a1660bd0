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

  // Opens the wallet after the workspace is stored. If a call fails in between, repeating it with
  // its request_id opens the wallet.
  ServerUnaryReactor* CreateWorkspace(CallbackServerContext* context,
                                      const pb::CreateWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      workers_.Post(call, [=](AuthBackend& backend) {
        const admin::Caller& caller = call.caller();
        if (!caller.installation && !caller.platform_operator && !backend.self_service()) {
          return call.Finish(admin::PermissionDenied(
              "PERMISSION_DENIED", "only operators of the platform may create workspaces here"));
        }
        auto made = WorkspaceAdmin(backend.store()).Create(caller, *request);
        AfterChange(backend, "workspace_create", made.ok());
        if (!made) return call.Finish(Fail{made.error()});
        *response = *std::move(made);
        backend.OpenWallet(response->name().substr(response->name().find('/') + 1),
                           [call](const admin::AdminResult<void>& opened) { call.Finish(opened); });
      });
    });
  }
  ServerUnaryReactor* GetWorkspace(CallbackServerContext* context,
                                   const pb::GetWorkspaceRequest* request,
                                   pb::Workspace* response) override {
    return Read(backend_, context, request, response, &WorkspaceAdmin::Get);
  }
  ServerUnaryReactor* ListWorkspaces(CallbackServerContext* context,
                                     const pb::ListWorkspacesRequest* request,
                                     pb::ListWorkspacesResponse* response) override {
    return Read(backend_, context, request, response, &WorkspaceAdmin::List);
  }
  ServerUnaryReactor* UpdateWorkspace(CallbackServerContext* context,
                                      const pb::UpdateWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    return Change(backend_, context, request, response, "workspace_update",
                  &WorkspaceAdmin::Update);
  }
  ServerUnaryReactor* CloseWorkspace(CallbackServerContext* context,
                                     const pb::CloseWorkspaceRequest* request,
                                     pb::Workspace* response) override {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto parts = admin::NameParts(*request);
      if (!parts) return call.Finish(Fail{parts.error()});
      if (auto checked = WorkspaceAdmin::CheckClose(*request); !checked) {
        return call.Finish(Fail{checked.error()});
      }
      AuthBackend* const backend = backend_.load();
      if (!backend) return call.Refuse(Unavailable("auth is not running").error);
      if (!backend->peers().prepare_close) {
        return call.Finish(
            admin::Precondition("BALANCE_UNKNOWN",
                                "the workspace's credit is unknown: targets.billing_admin is not "
                                "set in the configuration of auth"));
      }
      backend->peers().prepare_close(parts->front(), [=, this](const Result<bool>& zero) {
        if (!zero) return call.Refuse(zero.error());
        workers_.Run(
            context, call, [=, zero = *zero](AuthBackend& running) -> admin::AdminResult<void> {
              auto closed = WorkspaceAdmin(running.store()).Close(call.caller(), *request, zero);
              AfterChange(running, "workspace_close", closed.ok());
              if (!closed) return Fail{closed.error()};
              *response = *std::move(closed);
              return {};
            });
      });
    });
  }
  ServerUnaryReactor* ReopenWorkspace(CallbackServerContext* context,
                                      const pb::ReopenWorkspaceRequest* request,
                                      pb::Workspace* response) override {
    return Change(backend_, context, request, response, "workspace_reopen",
                  &WorkspaceAdmin::Reopen);
  }

 private:
  const BackendSlot& backend_;
  const OnBackend workers_{backend_};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkspaceAdmin(const BackendSlot& backend) {
  return std::make_unique<WorkspaceRpc>(backend);
}

}  // namespace tollgate::auth
