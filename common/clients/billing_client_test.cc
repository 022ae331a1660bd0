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
#include "common/clients/make_clients.h"
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

// Fails the first calls, then grants all others.
class FlakyBilling : public bv::BillingService::CallbackService {
 public:
  // The workspaces of all calls received.
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

class Lender : public bv::MeteringService::CallbackService {
 public:
  grpc::ServerUnaryReactor* TakeLease(grpc::CallbackServerContext* context,
                                      const bv::TakeLeaseRequest* request,
                                      bv::TakeLeaseResponse* response) override {
    response->set_denied_by(denied_by);
    response->set_granted_nano_usd(request->wanted_nano_usd());
    return rpc::Answer(context, Result<void>());
  }
  std::atomic<bv::DenyReason> denied_by = bv::DENY_REASON_UNSPECIFIED;
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
    builder.RegisterService(&lender_);
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
      co_return co_await client->Authorize(item, 60'000);
    });
  }

  Result<bv::TakeLeaseResponse> TakeLease() {
    return RunTask([&](Loop& loop) -> Task<Result<bv::TakeLeaseResponse>> {
      auto client = factory_->Metering(loop);
      bv::TakeLeaseRequest request;
      request.set_workspace_id("ws");
      request.set_wanted_nano_usd(42);
      co_return co_await client->TakeLease(request, 60'000);
    });
  }

  FlakyBilling billing_;
  Lender lender_;
  std::unique_ptr<grpc::Server> server_;
  rpc::ChannelSource channels_;
  DirectServices direct_;
  std::unique_ptr<ClientFactory> factory_;
};

// The ledger could not decide for this workspace, but answered for others of the same batch.
TEST_F(BillingClientTest, AnUndecidedAuthorizeIsUnavailableAndNeverARefusal) {
  billing_.undecided = 1;
  auto result = Authorize();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
  result = Authorize();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->granted());
}

TEST_F(BillingClientTest, ALeaseIsGrantedRefusedOrUndecided) {
  auto taken = TakeLease();
  ASSERT_TRUE(taken.ok()) << taken.error().ToString();
  EXPECT_EQ(taken->granted_nano_usd(), 42);
  lender_.denied_by = bv::DENY_REASON_NO_LEASE;
  taken = TakeLease();
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->denied_by(), bv::DENY_REASON_NO_LEASE);
  lender_.denied_by = bv::DENY_REASON_UNAVAILABLE;
  EXPECT_EQ(TakeLease().error().id, ErrorId::kServiceUnavailable);
}

TEST_F(BillingClientTest, WithinTheProcessALeaseIsTakenDirectly) {
  direct_.meter = [](const bv::MeterRequest&, auto done) { done(bv::MeterResponse()); };
  direct_.take_lease = [](const bv::TakeLeaseRequest& request, auto done) {
    bv::TakeLeaseResponse response;
    response.set_granted_nano_usd(request.wanted_nano_usd() + 1);
    done(response);
  };
  const auto taken = RunTask([&](Loop& loop) -> Task<Result<bv::TakeLeaseResponse>> {
    auto client = MakeMeteringClient(loop, nullptr, &direct_);
    bv::TakeLeaseRequest request;
    request.set_wanted_nano_usd(42);
    co_return co_await client->TakeLease(request, 60'000);
  });
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(taken->granted_nano_usd(), 43);
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
  // An attempt whose answer comes too late is repeated, so there may be more.
  EXPECT_GE(billing_.voided, 5);
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
    // Voids are accepted again as soon as the client receives replies.
    for (double refused = 0; refused < dropped.Value(); co_await loop.Sleep(5)) {
      refused = dropped.Value();
      client->Void(bv::VoidItem());
    }
    while (billing_.voided < kMaxVoids + 1) co_await loop.Sleep(5);
    co_return 0;
  });
}

// ADR 0039.
class BillingReplicasTest : public ::testing::Test {
 protected:
  // Returns the number of granted calls. at_once: all calls run concurrently.
  static int Authorize(const std::string& targets, int calls, bool at_once) {
    rpc::ChannelSource channels;
    config::v1::TargetsConfig config;
    config.set_billing(targets);
    DirectServices direct;
    auto factory = MakeClientFactory(config, channels, direct);
    return RunTask([&](Loop& loop) -> Task<int> {
      auto client = factory->Billing(loop);
      int granted = 0, ended = 0;
      for (int i = 0; i < calls; ++i) {
        loop.Spawn(One(*client, i, granted, ended));
        while (!at_once && ended <= i) co_await loop.Sleep(1);
      }
      while (ended < calls) co_await loop.Sleep(1);
      co_return granted;
    });
  }
  static Task<void> One(BillingClient& client, int number, int& granted, int& ended) {
    bv::AuthorizeItem item;
    item.set_workspace_id("w" + std::to_string(number % 40));
    const auto result = co_await client.Authorize(item, 60'000);
    granted += result.ok() && result->granted() ? 1 : 0;
    ++ended;
  }
  std::string both() const { return first_.target() + "," + second_->target(); }

  BillingReplica first_;
  std::unique_ptr<BillingReplica> second_ = std::make_unique<BillingReplica>();
};

TEST_F(BillingReplicasTest, OneThatKeepsUpGetsAllCallsOfEveryClient) {
  EXPECT_EQ(Authorize(both(), 80, false), 80);
  EXPECT_EQ(Authorize(second_->target() + "," + first_.target(), 80, false), 80);
  const size_t of_first = first_.billing.workspaces().size();
  const size_t of_second = second_->billing.workspaces().size();
  EXPECT_EQ(of_first + of_second, 40u);
  EXPECT_TRUE(of_first == 0 || of_second == 0) << of_first << " and " << of_second;
}

TEST_F(BillingReplicasTest, ManyUnansweredCallsAreSpread) {
  EXPECT_EQ(Authorize(both(), 400, true), 400);
  EXPECT_FALSE(first_.billing.workspaces().empty());
  EXPECT_FALSE(second_->billing.workspaces().empty());
}

TEST_F(BillingReplicasTest, AnyReplicaServesAnyWorkspace) {
  const std::string targets = both();
  second_.reset();
  EXPECT_EQ(Authorize(targets, 80, false), 80);
  EXPECT_EQ(first_.billing.workspaces().size(), 40u);
}

}  // namespace
}  // namespace tollgate
