#include <grpcpp/channel.h>

#include "common/clients/make_clients.h"
#include "common/money/money.h"
#include "common/rpc/replica_call.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate {
namespace {

using admin::v1::GetBalanceRequest;
using admin::v1::LedgerService;
using admin::v1::OpenWalletRequest;
using billing::v1::KeySpendService;
using billing::v1::ListKeySpendRequest;
using billing::v1::ListKeySpendResponse;

// In milliseconds. Retries are up to the caller.
constexpr int64_t kTimeout = 10'000;
constexpr int64_t kReadTimeout = 3'000;

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

  Task<Result<bool>> HasZeroBalance(std::string workspace_id) override {
    GetBalanceRequest request;
    request.set_name("workspaces/" + workspace_id + "/balance");
    auto balance = co_await rpc::CallAny<LedgerService>(
        loop_, replicas_, &LedgerService::StubInterface::async_interface::GetBalance,
        std::move(request), kReadTimeout, rpc::Moves::kYes);
    if (!balance) co_return Fail{std::move(balance).error()};
    for (const std::string* usd : {&balance->paid_usd(), &balance->granted_usd(),
                                   &balance->held_usd(), &balance->receivable_usd()}) {
      if (ParseDecimalUsdToNano(*usd) != 0) co_return Result<bool>(false);
    }
    co_return Result<bool>(true);
  }

  Task<Result<ListKeySpendResponse>> ListKeySpend(ListKeySpendRequest request) override {
    co_return co_await rpc::CallAny<KeySpendService>(
        loop_, replicas_, &KeySpendService::StubInterface::async_interface::ListKeySpend,
        std::move(request), kReadTimeout, rpc::Moves::kYes);
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
