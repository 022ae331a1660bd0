#include <grpcpp/channel.h>

#include "common/base/try.h"
#include "common/clients/make_clients.h"
#include "common/rpc/replica_caller.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"
#include "tollgate/billing/v1/closing.grpc.pb.h"

namespace tollgate {
namespace {

using admin::v1::Balance;
using admin::v1::LedgerService;
using admin::v1::OpenWalletRequest;
using billing::v1::ClosingService;
using billing::v1::KeySpendService;
using billing::v1::ListKeySpendRequest;
using billing::v1::ListKeySpendResponse;
using billing::v1::PrepareCloseRequest;
using billing::v1::PrepareCloseResponse;

// Retries are up to the caller.
struct OpenWalletMethod : rpc::UnaryMethod<LedgerService, OpenWalletRequest, Balance> {
  static constexpr UnaryPointer kUnary = &Async::OpenWallet;
  static constexpr rpc::Moves kMoves = rpc::Moves::kNo;
  static constexpr int64_t kTimeoutMs = 10'000;
};
// Waits for the provider, which forgets the cards.
struct PrepareCloseMethod
    : rpc::UnaryMethod<ClosingService, PrepareCloseRequest, PrepareCloseResponse> {
  static constexpr UnaryPointer kUnary = &Async::PrepareClose;
  static constexpr int64_t kTimeoutMs = 30'000;
};
struct ListKeySpendMethod
    : rpc::UnaryMethod<KeySpendService, ListKeySpendRequest, ListKeySpendResponse> {
  static constexpr UnaryPointer kUnary = &Async::ListKeySpend;
  static constexpr int64_t kTimeoutMs = 3'000;
};

class BillingAdminClientImpl : public BillingAdminClient {
 public:
  BillingAdminClientImpl(Loop& loop, ReplicasPtr replicas)
      : loop_(loop), replicas_(std::move(replicas)) {}

  Task<Result<void>> OpenWallet(std::string workspace_id) override {
    OpenWalletRequest request;
    request.set_name("workspaces/" + workspace_id + "/balance");
    CO_TRY(co_await Ask<OpenWalletMethod>(std::move(request)));
    co_return Result<void>();
  }

  Task<Result<bool>> PrepareClose(std::string workspace_id) override {
    PrepareCloseRequest request;
    request.set_workspace_id(std::move(workspace_id));
    CO_TRY(auto prepared, co_await Ask<PrepareCloseMethod>(std::move(request)));
    co_return Result<bool>(prepared.zero_balance());
  }

  Task<Result<ListKeySpendResponse>> ListKeySpend(ListKeySpendRequest request) override {
    return Ask<ListKeySpendMethod>(std::move(request));
  }

 private:
  template <typename Method>
  Task<Result<typename Method::Response>> Ask(typename Method::Request request) {
    return rpc::ReplicaCaller<Method>(loop_, replicas_).Call(std::move(request));
  }

  Loop& loop_;
  const ReplicasPtr replicas_;
};

}  // namespace

std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<BillingAdminClientImpl>(loop, std::move(replicas));
}

}  // namespace tollgate
