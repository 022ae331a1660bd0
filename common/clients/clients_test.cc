// Coalescing and retries: what shares a message, what leaves at once, what is tried again.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/clients/batcher.h"
#include "common/clients/factory.h"
#include "common/clients/make_clients.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {
namespace {

using testing::RunTask;

// A service that answers when it is told to.
struct Gate {
  explicit Gate(Loop& loop) : opened(loop) {}
  std::vector<size_t> batches;
  Event opened;
  std::optional<Error> failure;
  bool lose_one = false;
};
using IntBatcher = Batcher<int, int>;

Task<Result<std::vector<int>>> Answer(Gate& gate, std::vector<int> items) {
  gate.batches.push_back(items.size());
  co_await gate.opened.Wait();
  if (gate.failure) co_return Fail{*gate.failure};
  for (int& item : items) item *= 2;
  if (gate.lose_one) items.pop_back();
  co_return items;
}

std::shared_ptr<IntBatcher> MakeBatcher(Loop& loop, Gate& gate) {
  return std::make_shared<IntBatcher>(
      loop, [&gate](std::vector<int> items, int64_t) { return Answer(gate, std::move(items)); });
}

Task<void> CallOne(std::shared_ptr<IntBatcher> batcher, int item, int& right, int& failed) {
  auto reply = co_await batcher->Call(item, 1'000);
  if (!reply.ok()) {
    ++failed;
  } else if (*reply == item * 2) {
    ++right;
  }
}

TEST(Batcher, CallsThatWaitTravelTogetherAndGetTheirOwnReplies) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    auto batcher = MakeBatcher(loop, gate);
    int right = 0;
    int failed = 0;
    // Each alone in its turn: they leave at once, as far as batches may be under way.
    for (int i = 0; i < 2; ++i) {
      loop.Spawn(CallOne(batcher, i, right, failed));
      co_await loop.Sleep(0);
    }
    EXPECT_EQ(gate.batches, (std::vector<size_t>{1, 1}));
    for (int i = 0; i < 600; ++i) loop.Spawn(CallOne(batcher, i, right, failed));
    co_await loop.Sleep(0);
    EXPECT_EQ(gate.batches.size(), 2u);
    gate.opened.Set();
    while (right + failed < 602) co_await loop.Sleep(0);
    EXPECT_EQ(right, 602);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{1, 1, 256, 256, 88}));
    co_return 0;
  });
}

TEST(Batcher, CallsOfOneTurnShareAMessage) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    gate.opened.Set();
    auto batcher = MakeBatcher(loop, gate);
    int right = 0;
    int failed = 0;
    for (int i = 0; i < 10; ++i) loop.Spawn(CallOne(batcher, i, right, failed));
    while (right + failed < 10) co_await loop.Sleep(0);
    EXPECT_EQ(gate.batches, (std::vector<size_t>{10}));
    co_return 0;
  });
}

TEST(Batcher, AFailedBatchFailsEachOfItsCalls) {
  RunTask([](Loop& loop) -> Task<int> {
    Gate gate(loop);
    gate.opened.Set();
    gate.failure = Error{.id = ErrorId::kServiceUnavailable};
    auto batcher = MakeBatcher(loop, gate);
    int right = 0;
    int failed = 0;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, right, failed));
    while (right + failed < 3) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 3);
    // Replies that can not be told apart are worth nothing.
    gate.failure.reset();
    gate.lose_one = true;
    for (int i = 0; i < 3; ++i) loop.Spawn(CallOne(batcher, i, right, failed));
    while (right + failed < 6) co_await loop.Sleep(0);
    EXPECT_EQ(failed, 6);
    co_return 0;
  });
}

namespace bv = billing::v1;

// Fails the first calls, then grants.
class FlakyBilling : public bv::BillingService::CallbackService {
 public:
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
  std::atomic<int> authorizes{0};
  std::atomic<int> voided{0};
  std::atomic<bool> refuse{false};
};

class BillingClientTest : public ::testing::Test {
 protected:
  BillingClientTest() {
    grpc::ServerBuilder builder;
    rpc::ConfigureServer(builder);
    builder.RegisterService(&billing_);
    server_ = builder.BuildAndStart();
    channels_.SetServer(server_.get());
    factory_ = MakeClientFactory({}, channels_, direct_);
  }
  ~BillingClientTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  Result<bv::AuthorizeResult> Authorize() {
    return RunTask([&](Loop& loop) -> Task<Result<bv::AuthorizeResult>> {
      auto client = factory_->Billing(loop);
      bv::AuthorizeItem item;
      item.set_prompt_tokens_bound(42);
      co_return co_await client->Authorize(item);
    });
  }

  FlakyBilling billing_;
  std::unique_ptr<grpc::Server> server_;
  rpc::ChannelSource channels_;
  DirectServices direct_;
  std::unique_ptr<ClientFactory> factory_;
};

TEST_F(BillingClientTest, AuthorizeIsTriedAgainWhenTheServiceIsAway) {
  billing_.failures = 3;
  auto result = Authorize();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->authorized_nano_usd(), 42);
  EXPECT_EQ(billing_.authorizes, 4);
}

TEST_F(BillingClientTest, ARefusalIsNotTriedAgain) {
  billing_.refuse = true;
  auto result = Authorize();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kBadRequest);
  EXPECT_EQ(billing_.authorizes, 1);
}

TEST_F(BillingClientTest, AuthorizeGivesUpWithinTwoSeconds) {
  billing_.failures = 1'000'000;
  auto result = Authorize();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
  EXPECT_GE(billing_.authorizes, 4);
  EXPECT_LE(billing_.authorizes, 50);
}

TEST_F(BillingClientTest, AVoidIsRetriedInTheBackgroundEvenAfterItsClientHasGone) {
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

}  // namespace
}  // namespace tollgate
