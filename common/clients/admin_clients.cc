#include <grpcpp/channel.h>

#include "common/clients/make_clients.h"
#include "common/rpc/call.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate {
namespace {

namespace av = auth::v1;
namespace bv = billing::v1;
namespace lv = admin::v1;

// Milliseconds. Admin calls are interactive: long deadline, no retries.
constexpr int64_t kTimeout = 10'000;
// Reads every entry of the ledger.
constexpr int64_t kVerifyLedgerTimeout = 300'000;

class AuthAdminClientImpl : public AuthAdminClient {
 public:
  using Async = av::AuthAdminService::StubInterface::async_interface;

  AuthAdminClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop), stub_(av::AuthAdminService::NewStub(channel)) {}

  Task<Result<av::CreateWorkspaceResponse>> CreateWorkspace(
      av::CreateWorkspaceRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::CreateWorkspace, std::move(request), kTimeout);
  }
  Task<Result<av::ListWorkspacesResponse>> ListWorkspaces(
      av::ListWorkspacesRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::ListWorkspaces, std::move(request), kTimeout);
  }
  Task<Result<av::CreateKeyResponse>> CreateKey(av::CreateKeyRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::CreateKey, std::move(request), kTimeout);
  }
  Task<Result<av::ListKeysResponse>> ListKeys(av::ListKeysRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::ListKeys, std::move(request), kTimeout);
  }
  Task<Result<av::SetKeyStateResponse>> SetKeyState(av::SetKeyStateRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::SetKeyState, std::move(request), kTimeout);
  }
  Task<Result<av::ListAuditEventsResponse>> ListAuditEvents(
      av::ListAuditEventsRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::ListAuditEvents, std::move(request), kTimeout);
  }

 private:
  Loop& loop_;
  std::unique_ptr<av::AuthAdminService::Stub> stub_;
};

class BillingAdminClientImpl : public BillingAdminClient {
 public:
  using Async = bv::BillingAdminService::StubInterface::async_interface;

  BillingAdminClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop),
        stub_(bv::BillingAdminService::NewStub(channel)),
        ledger_(lv::LedgerService::NewStub(channel)) {}

  Task<Result<void>> OpenWallet(std::string workspace_id) override {
    lv::OpenWalletRequest request;
    request.set_name("workspaces/" + workspace_id + "/balance");
    auto opened = co_await rpc::Unary(
        loop_, ledger_->async(), &lv::LedgerService::StubInterface::async_interface::OpenWallet,
        std::move(request), kTimeout);
    if (!opened) co_return Fail{std::move(opened).error()};
    co_return Result<void>();
  }

  Task<Result<bv::AddCreditResponse>> AddCredit(bv::AddCreditRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::AddCredit, std::move(request), kTimeout);
  }
  Task<Result<bv::SetCapResponse>> SetCap(bv::SetCapRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::SetCap, std::move(request), kTimeout);
  }
  Task<Result<bv::GetBalanceResponse>> GetBalance(bv::GetBalanceRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::GetBalance, std::move(request), kTimeout);
  }
  Task<Result<bv::ListEntriesResponse>> ListEntries(bv::ListEntriesRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::ListEntries, std::move(request), kTimeout);
  }
  Task<Result<bv::VerifyLedgerResponse>> VerifyLedger(bv::VerifyLedgerRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::VerifyLedger, std::move(request),
                      kVerifyLedgerTimeout);
  }

 private:
  Loop& loop_;
  std::unique_ptr<bv::BillingAdminService::Stub> stub_;
  std::unique_ptr<lv::LedgerService::Stub> ledger_;
};

}  // namespace

std::unique_ptr<AuthAdminClient> MakeAuthAdminClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<AuthAdminClientImpl>(loop, channel);
}

std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<BillingAdminClientImpl>(loop, channel);
}

}  // namespace tollgate
