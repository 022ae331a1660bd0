// Retries of the billing client.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>

#include "common/clients/factory.h"
#include "common/observability/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {
namespace {

using testing::RunTask;

namespace bv = billing::v1;

// Fails the first calls, then grants all.
class FlakyBilling : public bv::BillingService::CallbackService {
 public:
  // The workspaces that were asked for.
  std::set<std::string> workspaces() const {
    std::lock_guard lock(mutex_);
    return workspaces_;
  }
  grpc::ServerUnaryReactor* Authorize(grpc::CallbackServerContext* context,
                                      const bv::AuthorizeRequest* request,
                                      bv::AuthorizeResponse* response) override {
    ++authorizes;
    if (failures > 0) {
      --failures;
      return rpc::Answer(context, Unavailable("flaky"));
    }
    if (refuse) return rpc::Answer(context, BadRequest("refused"));
    for (const auto& item : request->items()) {
      auto* result = response->add_results();
      {
        std::lock_guard lock(mutex_);
        workspaces_.insert(item.workspace_id());
      }
      if (undecided > 0) {
        --undecided;
        result->set_denied_by(bv::DENY_REASON_UNAVAILABLE);
        continue;
      }
      result->set_granted(true);
      result->set_authorized_nano_usd(item.prompt_tokens_bound());
    }
    return rpc::Answer(context, Result<void>());
  }
  grpc::ServerUnaryReactor* Void(grpc::CallbackServerContext* context,
                                 const bv::VoidRequest* request,
                                 bv::VoidResponse* response) override {
    if (failures > 0) {
      --failures;
      return rpc::Answer(context, Unavailable("flaky"));
    }
    for (int i = 0; i < request->items_size(); ++i) response->add_results()->set_ok(true);
    voided += request->items_size();
    return rpc::Answer(context, Result<void>());
  }

  std::atomic<int> failures{0};
  std::atomic<int> undecided{0};
  std::atomic<int> authorizes{0};
  std::atomic<int> voided{0};
  std::atomic<bool> refuse{false};

 private:
  mutable std::mutex mutex_;
  std::set<std::string> workspaces_;
};

// A replica of billing on a port.
struct BillingReplica {
  BillingReplica() {
    grpc::ServerBuilder builder;
    rpc::ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&billing);
    server = builder.BuildAndStart();
  }
  ~BillingReplica() { server->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return "127.0.0.1:" + std::to_string(port); }

  FlakyBilling billing;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

class BillingClientTest : public ::testing::Test {
 protected:
  BillingClientTest() {
    grpc::ServerBuilder builder;
    rpc::ConfigureServer(builder);
    builder.RegisterService(&billing_);
    server_ = builder.BuildAndStart();
    channels_.SetServers(server_.get());
    factory_ = MakeClientFactory({}, channels_, direct_);
  }
  ~BillingClientTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  Result<bv::AuthorizeResult> Authorize() {
    return RunTask([&](Loop& loop) -> Task<Result<bv::AuthorizeResult>> {
      auto client = factory_->Billing(loop);
      bv::AuthorizeItem item;
      item.set_prompt_tokens_bound(42);
      co_return co_await client->Authorize(item, 2'000);
    });
  }

  FlakyBilling billing_;
  std::unique_ptr<grpc::Server> server_;
  rpc::ChannelSource channels_;
  DirectServices direct_;
  std::unique_ptr<ClientFactory> factory_;
};

// The ledger could not decide for this workspace, while it answered others of the same batch.
TEST_F(BillingClientTest, AnUndecidedAuthorizeIsUnavailableAndNeverARefusal) {
  billing_.undecided = 1;
  auto result = Authorize();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
  result = Authorize();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->granted());
}

TEST_F(BillingClientTest, ARefusalIsPassedOn) {
  billing_.refuse = true;
  auto result = Authorize();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kBadRequest) << result.error().ToString();
  EXPECT_EQ(billing_.authorizes, 1);
}

TEST_F(BillingClientTest, AVoidIsRetriedInTheBackgroundAfterItsClientIsDestroyed) {
  billing_.failures = 2;
  RunTask([&](Loop& loop) -> Task<int> {
    auto client = factory_->Billing(loop);
    for (int i = 0; i < 5; ++i) client->Void(bv::VoidItem());
    client.reset();
    while (billing_.voided < 5) co_await loop.Sleep(5);
    co_return 0;
  });
  EXPECT_EQ(billing_.voided, 5);
}

TEST_F(BillingClientTest, VoidsAreBoundedWhileBillingIsUnreachable) {
  constexpr int kMaxVoids = 32'768;
  billing_.failures = 1'000'000;
  auto& dropped = metrics::Counter("tollgate_gateway_voids_dropped_total", "");
  RunTask([&](Loop& loop) -> Task<int> {
    auto client = factory_->Billing(loop);
    const double before = dropped.Value();
    for (int i = 0; i < kMaxVoids + 100; ++i) client->Void(bv::VoidItem());
    EXPECT_EQ(dropped.Value() - before, 100);
    billing_.failures = 0;
    while (billing_.voided < kMaxVoids) co_await loop.Sleep(5);
    client->Void(bv::VoidItem());
    EXPECT_EQ(dropped.Value() - before, 100) << "there is room again";
    while (billing_.voided < kMaxVoids + 1) co_await loop.Sleep(5);
    co_return 0;
  });
}

// Calls of one workspace share the batches of one replica, whoever makes them (ADR 0039).
TEST(BillingReplicasTest, AWorkspaceHasOneReplicaAndAnotherOneWhenThatIsLost) {
  constexpr int kWorkspaces = 40;
  BillingReplica first;
  auto second = std::make_unique<BillingReplica>();
  const auto authorize_all = [&](const std::string& targets) {
    rpc::ChannelSource channels;
    config::v1::TargetsConfig config;
    config.set_billing(targets);
    DirectServices direct;
    auto factory = MakeClientFactory(config, channels, direct);
    return RunTask([&](Loop& loop) -> Task<int> {
      auto client = factory->Billing(loop);
      int granted = 0;
      for (int i = 0; i < 2 * kWorkspaces; ++i) {
        bv::AuthorizeItem item;
        item.set_workspace_id("w" + std::to_string(i % kWorkspaces));
        const auto result = co_await client->Authorize(item, 5'000);
        granted += result.ok() && result->granted() ? 1 : 0;
      }
      co_return granted;
    });
  };
  EXPECT_EQ(authorize_all(first.target() + "," + second->target()), 2 * kWorkspaces);
  EXPECT_EQ(authorize_all(second->target() + "," + first.target()), 2 * kWorkspaces);
  const std::set<std::string> of_first = first.billing.workspaces();
  const std::set<std::string> of_second = second->billing.workspaces();
  EXPECT_FALSE(of_first.empty());
  EXPECT_FALSE(of_second.empty());
  EXPECT_EQ(of_first.size() + of_second.size(), static_cast<size_t>(kWorkspaces));
  const std::string targets = first.target() + "," + second->target();
  second.reset();
  EXPECT_EQ(authorize_all(targets), 2 * kWorkspaces) << "any replica serves any workspace";
}

}  // namespace
}  // namespace tollgate
