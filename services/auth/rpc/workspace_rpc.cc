#include "common/admin/values.h"
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
    auto caller = admin::Admit(*context, *request);
    if (!caller) return RefuseAdmin(context, caller.error());
    AuthBackend* const backend = backend_.load();
    if (!backend) {
      return RefuseAdmin(context, admin::FromError(Unavailable("auth is not running").error));
    }
    if (!caller->installation && !caller->platform_operator && !backend->self_service()) {
      const admin::Failure refused =
          admin::PermissionDenied("PERMISSION_DENIED",
                                  "only operators of the platform may create workspaces here")
              .error;
      admin::NoteRefusal(*caller, refused);
      return RefuseAdmin(context, refused);
    }
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const bool posted = backend->workers().Submit(
        [backend, reactor, request, response, caller = *std::move(caller)] {
          auto made = WorkspaceAdmin(backend->store()).Create(caller, *request);
          CountChange("workspace_create", made.ok());
          if (!made) {
            admin::NoteRefusal(caller, made.error());
            return reactor->Finish(FinishStatus(made.error()));
          }
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
    auto caller = admin::Admit(*context, *request);
    if (!caller) return RefuseAdmin(context, caller.error());
    auto parts = admin::NameParts("workspaces/*", request->name(), "name");
    if (!parts) return RefuseAdmin(context, parts.error());
    AuthBackend* const backend = backend_.load();
    if (!backend) {
      return RefuseAdmin(context, admin::FromError(Unavailable("auth is not running").error));
    }
    if (!backend->peers().has_zero_balance) {
      return RefuseAdmin(
          context, admin::Precondition("BALANCE_UNKNOWN",
                                       "the workspace's credit is unknown: targets.billing_admin "
                                       "is not set in the configuration of auth")
                       .error);
    }
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    backend->peers().has_zero_balance(
        parts->front(),
        [this, reactor, request, response, caller = *std::move(caller)](const Result<bool>& zero) {
          if (!zero) return reactor->Finish(FinishStatus(admin::FromError(zero.error())));
          Close(reactor, caller, *request, *zero, response);
        });
    return reactor;
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
  void Close(ServerUnaryReactor* reactor, const admin::Caller& caller,
             const pb::CloseWorkspaceRequest& request, bool has_zero_balance,
             pb::Workspace* response) {
    const auto refuse = [reactor](const char* why) {
      reactor->Finish(FinishStatus(admin::FromError(Unavailable(why).error)));
    };
    AuthBackend* const backend = backend_.load();
    if (!backend) return refuse("auth is not running");
    const bool posted =
        backend->workers().Submit([backend, reactor, caller, &request, has_zero_balance, response] {
          auto closed = WorkspaceAdmin(backend->store()).Close(caller, request, has_zero_balance);
          CountChange("workspace_close", closed.ok());
          if (!closed) return reactor->Finish(FinishStatus(closed.error()));
          backend->feed().Wake();
          *response = *std::move(closed);
          reactor->Finish(grpc::Status::OK);
        });
    if (!posted) refuse("too many calls are queued");
  }

  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeWorkspaceAdmin(const BackendSlot& backend) {
  return std::make_unique<WorkspaceRpc>(backend);
}

}  // namespace tollgate::auth
