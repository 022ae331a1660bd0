#include <grpcpp/channel.h>

#include "common/clients/make_clients.h"
#include "common/rpc/replica_call.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"

namespace tollgate {
namespace {

using admin::v1::LedgerService;
using admin::v1::OpenWalletRequest;

// Milliseconds. No retries, which are the caller's affair.
constexpr int64_t kTimeout = 10'000;

class BillingAdminClientImpl : public BillingAdminClient {
 public:
  BillingAdminClientImpl(Loop& loop, ReplicasPtr replicas)
      : loop_(loop), replicas_(std::move(replicas)) {}

  Task<Result<void>> OpenWallet(std::string workspace_id) override {
    OpenWalletRequest request;
    request.set_name("workspaces/" + workspace_id + "/balance");
    auto opened = co_await rpc::CallAny<LedgerService>(
        loop_, replicas_, &LedgerService::StubInterface::async_interface::OpenWallet,
        std::move(request), kTimeout, rpc::Moves::kNo);
    if (!opened) co_return Fail{std::move(opened).error()};
    co_return Result<void>();
  }

 private:
  Loop& loop_;
  const ReplicasPtr replicas_;
};

}  // namespace

std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<BillingAdminClientImpl>(loop, std::move(replicas));
}

}  // namespace tollgate
