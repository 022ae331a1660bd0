#include "common/base/try.h"
#include "services/auth/admin/front_facts.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/auth_backend.h"
#include "tollgate/auth/v1/front.grpc.pb.h"

namespace tollgate::auth {
namespace {

class FrontRpc : public v1::FrontService::CallbackService {
 public:
  explicit FrontRpc(const BackendSlot& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ReadWorkspaceFacts(grpc::CallbackServerContext* context,
                                               const v1::ReadWorkspaceFactsRequest* request,
                                               v1::ReadWorkspaceFactsResponse* response) override {
    return Run(context, response, [request](AuthBackend& backend) {
      return auth::ReadWorkspaceFacts(backend.store(), *request);
    });
  }
  grpc::ServerUnaryReactor* NoteChange(grpc::CallbackServerContext* context,
                                       const v1::NoteChangeRequest* request,
                                       v1::NoteChangeResponse* response) override {
    return Run(context, response, [request](AuthBackend& backend) {
      return auth::NoteChange(backend.store(), *request);
    });
  }

 private:
  template <typename Response, typename Call>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context, Response* response,
                                Call call) {
    AuthBackend* const backend = backend_.load();
    if (!backend) return rpc::Answer(context, Unavailable("auth is not running"));
    return rpc::ServeBlocking(context, backend->workers(), [=]() -> Result<void> {
      TRY(auto result, call(*backend));
      *response = std::move(result);
      return {};
    });
  }

  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFrontRpc(const BackendSlot& backend) {
  return std::make_unique<FrontRpc>(backend);
}

}  // namespace tollgate::auth
