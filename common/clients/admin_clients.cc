#include <grpcpp/channel.h>

#include "common/clients/make_clients.h"
#include "common/rpc/replica_call.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate {
namespace {

namespace av = auth::v1;
namespace bv = billing::v1;
namespace lv = admin::v1;

// Milliseconds. Admin calls are interactive: long deadline, and no retries, which are the caller's
// affair. Each goes to a replica in use.
constexpr int64_t kTimeout = 10'000;
// Reads every entry of the ledger.
constexpr int64_t kVerifyLedgerTimeout = 300'000;

class AuthAdminClientImpl : public AuthAdminClient {
 public:
  using Async = av::AuthAdminService::StubInterface::async_interface;

  AuthAdminClientImpl(Loop& loop, ReplicasPtr replicas)
      : loop_(loop), replicas_(std::move(replicas)) {}

  Task<Result<av::CreateWorkspaceResponse>> CreateWorkspace(
      av::CreateWorkspaceRequest request) override {
    return Call(&Async::CreateWorkspace, std::move(request), kTimeout);
  }
  Task<Result<av::ListWorkspacesResponse>> ListWorkspaces(
      av::ListWorkspacesRequest request) override {
    return Call(&Async::ListWorkspaces, std::move(request), kTimeout);
  }
  Task<Result<av::CreateKeyResponse>> CreateKey(av::CreateKeyRequest request) override {
    return Call(&Async::CreateKey, std::move(request), kTimeout);
  }
  Task<Result<av::ListKeysResponse>> ListKeys(av::ListKeysRequest request) override {
    return Call(&Async::ListKeys, std::move(request), kTimeout);
  }
  Task<Result<av::SetKeyStateResponse>> SetKeyState(av::SetKeyStateRequest request) override {
    return Call(&Async::SetKeyState, std::move(request), kTimeout);
  }
  Task<Result<av::ListAuditEventsResponse>> ListAuditEvents(
      av::ListAuditEventsRequest request) override {
    return Call(&Async::ListAuditEvents, std::move(request), kTimeout);
  }

 private:
  template <typename Request, typename Response>
  Task<Result<Response>> Call(void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                    std::function<void(grpc::Status)>),
                              std::type_identity_t<Request> request, int64_t timeout_ms) {
    return rpc::CallAny<av::AuthAdminService>(loop_, replicas_, method, std::move(request),
                                              timeout_ms, rpc::Moves::kNo);
  }

  Loop& loop_;
  const ReplicasPtr replicas_;
};

class BillingAdminClientImpl : public BillingAdminClient {
 public:
  using Async = bv::BillingAdminService::StubInterface::async_interface;

  BillingAdminClientImpl(Loop& loop, ReplicasPtr replicas)
      : loop_(loop), replicas_(std::move(replicas)) {}

  Task<Result<void>> OpenWallet(std::string workspace_id) override {
    lv::OpenWalletRequest request;
    request.set_name("workspaces/" + workspace_id + "/balance");
    auto opened = co_await rpc::CallAny<lv::LedgerService>(
        loop_, replicas_, &lv::LedgerService::StubInterface::async_interface::OpenWallet,
        std::move(request), kTimeout, rpc::Moves::kNo);
    if (!opened) co_return Fail{std::move(opened).error()};
    co_return Result<void>();
  }

  Task<Result<bv::AddCreditResponse>> AddCredit(bv::AddCreditRequest request) override {
    return Call(&Async::AddCredit, std::move(request), kTimeout);
  }
  Task<Result<bv::SetCapResponse>> SetCap(bv::SetCapRequest request) override {
    return Call(&Async::SetCap, std::move(request), kTimeout);
  }
  Task<Result<bv::GetBalanceResponse>> GetBalance(bv::GetBalanceRequest request) override {
    return Call(&Async::GetBalance, std::move(request), kTimeout);
  }
  Task<Result<bv::ListEntriesResponse>> ListEntries(bv::ListEntriesRequest request) override {
    return Call(&Async::ListEntries, std::move(request), kTimeout);
  }
  Task<Result<bv::VerifyLedgerResponse>> VerifyLedger(bv::VerifyLedgerRequest request) override {
    return Call(&Async::VerifyLedger, std::move(request), kVerifyLedgerTimeout);
  }

 private:
  template <typename Request, typename Response>
  Task<Result<Response>> Call(void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                    std::function<void(grpc::Status)>),
                              std::type_identity_t<Request> request, int64_t timeout_ms) {
    return rpc::CallAny<bv::BillingAdminService>(loop_, replicas_, method, std::move(request),
                                                 timeout_ms, rpc::Moves::kNo);
  }

  Loop& loop_;
  const ReplicasPtr replicas_;
};

}  // namespace

std::unique_ptr<AuthAdminClient> MakeAuthAdminClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<AuthAdminClientImpl>(loop, std::move(replicas));
}

std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<BillingAdminClientImpl>(loop, std::move(replicas));
}

}  // namespace tollgate
