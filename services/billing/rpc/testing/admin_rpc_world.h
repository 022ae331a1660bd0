// The services of tollgate.admin.v1 over a real ledger, for tests. Called over a unix socket, where
// callers say their names, over TCP, and within the process as the dashboard does for people.
#pragma once

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "common/money/money.h"
#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/rpc/billing_rpc.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/dead_letters.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/statements.grpc.pb.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"
#include "tollgate/admin/v1/verifications.grpc.pb.h"

namespace tollgate::billing {

namespace pb = tollgate::admin::v1;

inline constexpr char kWorkspace[] = "workspaces/ws";

class AdminRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-admin-rpc-" + std::to_string(getpid()) + ".db"))
                .string();
    Remove();
    if (options_.sql.url.empty()) options_.sql.url = "sqlite:" + file_;
    options_.policy.second_person_above_nano_usd = 50 * kNanoPerUsd;
    options_.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    ledger_ = std::make_unique<LedgerService>(options_, SystemClock::Get());
    services_ = MakeAdminServices(*ledger_, {.second_person_above_nano_usd = 50 * kNanoPerUsd});
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.AddListeningPort("unix:" + file_ + ".sock", grpc::InsecureServerCredentials());
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    Use(grpc::CreateChannel("unix:" + file_ + ".sock", grpc::InsecureChannelCredentials()));
    tcp_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                               grpc::InsecureChannelCredentials());
    ASSERT_TRUE(ledger_->Start().ok());
  }
  void TearDown() override {
    server_->Shutdown();
    ledger_->Stop();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm", ".sock"})
      std::filesystem::remove(file_ + suffix);
  }
  void Use(const std::shared_ptr<grpc::Channel>& channel) {
    books_ = pb::LedgerService::NewStub(channel);
    adjustments_ = pb::AdjustmentService::NewStub(channel);
    usage_ = pb::UsageService::NewStub(channel);
    statements_ = pb::StatementService::NewStub(channel);
    dead_letters_ = pb::DeadLetterService::NewStub(channel);
    verifications_ = pb::LedgerVerificationService::NewStub(channel);
  }

  // Makes the next calls as a person who has signed in.
  void SignIn(const std::string& person) {
    person_ = person;
    Use(server_->InProcessChannel({}));
  }
  // Adds paid credit as a payment does.
  void Pay(int64_t usd) {
    AddCredit credit = MakeAddCredit("paid-" + std::to_string(usd), usd * kNanoPerUsd, false);
    credit.workspace = "ws";
    ASSERT_TRUE(Do({credit}).at(0).ok);
  }

  // Makes one call. Returns "" or the reason of the failure.
  template <typename Stub, typename Method, typename Request, typename Response>
  std::string Call(Stub& stub, Method method, const Request& request, Response& response) {
    grpc::ClientContext context;
    if (!person_.empty()) {
      common::v1::Identity identity;
      identity.set_actor("user:" + person_);
      identity.set_user_id(person_);
      identity.set_platform_operator(true);
      identity.set_signed_in_us(SystemClock::Get().WallUs());
      context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
    }
    if (!operator_.empty()) context.AddMetadata("tollgate-operator", operator_);
    response.Clear();
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return "";
    google::rpc::Status detail;
    google::rpc::ErrorInfo info;
    EXPECT_TRUE(detail.ParseFromString(status.error_details()));
    EXPECT_EQ(detail.code(), status.error_code());
    EXPECT_TRUE(detail.details_size() > 0 && detail.details(0).UnpackTo(&info));
    EXPECT_EQ(info.domain(), "tollgate");
    return info.reason();
  }

  std::vector<Reply> Do(std::vector<Operation> operations) {
    std::promise<std::vector<Reply>> done;
    ledger_->Submit(std::move(operations), [&done](Result<std::vector<Reply>> replies) {
      done.set_value(replies.ok() ? *replies : std::vector<Reply>());
    });
    return done.get_future().get();
  }
  std::string OpenWallet() {
    pb::OpenWalletRequest request;
    request.set_name("workspaces/ws/balance");
    pb::Balance balance;
    return Call(*books_, &pb::LedgerService::Stub::OpenWallet, request, balance);
  }
  std::string Grant(const std::string& id, const std::string& usd, bool paid = true) {
    pb::CreateCreditGrantRequest request;
    request.set_parent(kWorkspace);
    request.set_request_id(id);
    request.mutable_credit_grant()->set_amount_usd(usd);
    request.mutable_credit_grant()->set_paid(paid);
    return Call(*adjustments_, &pb::AdjustmentService::Stub::CreateCreditGrant, request, grant_);
  }
  std::string Adjust(const std::string& id, pb::AdjustmentKind kind, const std::string& usd) {
    pb::CreateAdjustmentRequest request;
    request.set_parent(kWorkspace);
    request.set_request_id(id);
    request.mutable_adjustment()->set_kind(kind);
    request.mutable_adjustment()->set_amount_usd(usd);
    request.mutable_adjustment()->set_reason("test");
    return Call(*adjustments_, &pb::AdjustmentService::Stub::CreateAdjustment, request,
                adjustment_);
  }
  std::string Approve(const std::string& id) {
    pb::ApproveAdjustmentRequest request;
    request.set_name("workspaces/ws/adjustments/" + id);
    return Call(*adjustments_, &pb::AdjustmentService::Stub::ApproveAdjustment, request,
                adjustment_);
  }
  pb::Balance Balance() {
    pb::GetBalanceRequest request;
    request.set_name("workspaces/ws/balance");
    pb::Balance balance;
    EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::GetBalance, request, balance), "");
    return balance;
  }

  std::string file_;
  LedgerService::Options options_;  // set before SetUp
  std::unique_ptr<LedgerService> ledger_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> tcp_;
  std::unique_ptr<pb::LedgerService::Stub> books_;
  std::unique_ptr<pb::AdjustmentService::Stub> adjustments_;
  std::unique_ptr<pb::UsageService::Stub> usage_;
  std::unique_ptr<pb::StatementService::Stub> statements_;
  std::unique_ptr<pb::DeadLetterService::Stub> dead_letters_;
  std::unique_ptr<pb::LedgerVerificationService::Stub> verifications_;
  std::string operator_ = "anna";
  std::string person_;  // "": operator_ calls
  pb::CreditGrant grant_;
  pb::Adjustment adjustment_;
};

}  // namespace tollgate::billing
