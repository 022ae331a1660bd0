#include <grpcpp/server_context.h>

#include "common/rpc/error_status.h"
#include "services/billing/rpc/payments_rpc.h"
#include "tollgate/billing/v1/closing.grpc.pb.h"

namespace tollgate::billing {
namespace {

class ClosingRpc : public v1::ClosingService::CallbackService {
 public:
  explicit ClosingRpc(payments::Payments& payments) : payments_(payments) {}

  grpc::ServerUnaryReactor* PrepareClose(grpc::CallbackServerContext* context,
                                         const v1::PrepareCloseRequest* request,
                                         v1::PrepareCloseResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const bool queued = payments_.open() && payments_.pool().Submit([=, this] {
      auto zero = payments_.admin().PrepareClose(request->workspace_id(), audit::Origin{"auth"});
      if (zero.ok()) response->set_zero_balance(*zero);
      reactor->Finish(zero.ok() ? grpc::Status::OK
                                : rpc::ToStatus(Unavailable(zero.error().message).error));
    });
    if (!queued) reactor->Finish(rpc::ToStatus(Unavailable("payments are not open").error));
    return reactor;
  }

 private:
  payments::Payments& payments_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeClosingRpc(payments::Payments& payments) {
  return std::make_unique<ClosingRpc>(payments);
}

}  // namespace tollgate::billing
