// A name with several addresses stands for several routers, each with its own link. Addresses come
// and go while requests run. A link that has reached its age is replaced, and no caller notices.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "common/observability/metrics.h"
#include "common/rpc/replica.h"
#include "common/rpc/resolver.h"
#include "services/inference_router/rpc/testing/link_fixture.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::GenerateRequest;
using ::tollgate::testing::RunOn;
using namespace testing;  // NOLINT: the router and its client

// A handler that sends the router's name, then waits until the test opens the gate if the model is
// "waits".
struct Gate {
  Loop& loop;  // the router's loop
  std::atomic<bool> open{false};
  std::atomic<int> waiting{0};
};
GenerateHandler Named(std::string name, Gate* gate = nullptr) {
  return [name, gate](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    if (!co_await sink->Send(TextEvent(name))) co_return;
    if (request.model() == "waits") {
      ++gate->waiting;
      while (!gate->open) co_await gate->loop.Sleep(5);
    }
    co_await sink->Send(TextEvent("end"));
    co_await sink->Send(EndEvent());
  };
}

class LinkRoutersTest : public LinkTest {
 protected:
  LinkRoutersTest() { one_loop_.Start(); }
  static std::string AddressOf(const Router& router) {
    return "127.0.0.1:" + std::to_string(router.port());
  }
  void SetAddresses(std::vector<std::string> addresses) {
    std::lock_guard lock(mutex_);
    addresses_ = std::move(addresses);
  }
  // A client for the name "routers:7001".
  void ConnectByName() {
    RouterTargets routers{
        .targets = {"routers:7001"},
        .make =
            [this](const std::string& address) {
              return std::make_shared<rpc::Replica>(
                  loop(), "inference-router", address,
                  grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
            },
        .resolver =
            std::make_shared<rpc::Resolver>([](const std::string&, const rpc::Found& found) {
              std::lock_guard lock(mutex_);
              found(addresses_);
            })};
    client_ = MakeLinkClient(loop(), std::move(routers));
    AwaitLink();
  }
  // The routers that answer this many requests. may_lose: failed requests appear as "lost".
  std::set<std::string> Answering(int requests = 8, bool may_lose = false) {
    std::set<std::string> names;
    for (int i = 0; i < requests; ++i) {
      const Received received = Ask("m", 1);
      if (may_lose && received.error) {
        names.insert("lost");
        continue;
      }
      EXPECT_TRUE(received.ended && !received.error)
          << (received.error ? received.error->ToString() : "");
      if (!received.texts.empty()) names.insert(received.texts[0]);
    }
    return names;
  }
  template <typename Done>
  static bool Becomes(Done done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < until) {
      if (done()) return true;
    }
    return false;
  }
  static bool HasSeries(const std::string& address) {
    return metrics::Render().find(address + "\"") != std::string::npos;
  }
  // Starts a request that waits after its first event.
  std::future<Received> StartWaiting() {
    auto promise = std::make_shared<std::promise<Received>>();
    loop().Post([this, promise] {
      loop().Spawn([](InferenceClient& client,
                      std::shared_ptr<std::promise<Received>> promise) -> Task<void> {
        promise->set_value(co_await Receive(client.Start(Request("waits", 1))));
      }(*client_, promise));
    });
    return promise->get_future();
  }

  LoopPool one_loop_{1};

  // The resolver's threads may use these until a pending look-up ends, even after the test.
  static inline std::mutex mutex_;
  static inline std::vector<std::string> addresses_;
};

TEST_P(LinkRoutersTest, EachAddressOfANameIsARouterThatComesAndGoes) {
  Gate gate{one_loop_.loop(0)};
  Router first(one_loop_, Named("first", &gate));
  Router second(router_loops_, Named("second"));
  Router third(router_loops_, Named("third"));
  SetAddresses({AddressOf(first)});
  ConnectByName();
  EXPECT_EQ(Answering(), std::set<std::string>{"first"});
  std::future<Received> running = StartWaiting();
  ASSERT_TRUE(Becomes([&] { return gate.waiting == 1; }));
  SetAddresses({AddressOf(first), AddressOf(second)});
  EXPECT_TRUE(Becomes([&] { return Answering() == std::set<std::string>{"first", "second"}; }));
  EXPECT_TRUE(HasSeries(AddressOf(first)));
  SetAddresses({AddressOf(second), AddressOf(third)});
  EXPECT_TRUE(Becomes([&] { return Answering() == std::set<std::string>{"second", "third"}; }));
  // Requests on the removed router end there. After that its metrics are removed.
  gate.open = true;
  const Received received = running.get();
  EXPECT_TRUE(received.ended && !received.error);
  EXPECT_EQ(received.texts, (std::vector<std::string>{"first", "end"}));
  EXPECT_TRUE(Becomes([&] { return !HasSeries(AddressOf(first)); })) << metrics::Render();
  EXPECT_TRUE(HasSeries(AddressOf(second)));
}

TEST_P(LinkRoutersTest, ARouterThatIsGoneIsNoReasonToFailWhileAnotherAddressIsThere) {
  auto first = std::make_unique<Router>(router_loops_, Named("first"));
  Router second(router_loops_, Named("second"));
  SetAddresses({AddressOf(*first), AddressOf(second)});
  ConnectByName();
  EXPECT_TRUE(Becomes([&] { return Answering() == std::set<std::string>{"first", "second"}; }));
  first.reset();
  // Requests that were sent before the loss of the link is noticed are lost; the gateway moves them
  // (gateway/pipeline/answer/tries.h).
  EXPECT_TRUE(Becomes([&] { return Answering(8, true) == std::set<std::string>{"second"}; }));
  EXPECT_EQ(Answering(), std::set<std::string>{"second"});
}

TEST_P(LinkRoutersTest, AnOldLinkIsReplacedAndItsRequestsGoOn) {
  Gate gate{one_loop_.loop(0)};
  Router router(one_loop_, Named("router", &gate), 0, {.max_body_bytes = kDefaultRouterBodyBytes},
                /*max_link_age_ms=*/2'000);
  client_ = MakeLinkClient(loop(), {router.Tcp()});
  AwaitLink();
  std::future<Received> running = StartWaiting();
  ASSERT_TRUE(Becomes([&] { return gate.waiting == 1; }));
  // Runs through several link ages. Answering expects no failures.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < until) Answering(1);
  gate.open = true;
  const Received received = running.get();
  EXPECT_TRUE(received.ended && !received.error);
}

INSTANTIATE_TEST_SUITE_P(Tcp, LinkRoutersTest, ::testing::Values(true));

}  // namespace
}  // namespace tollgate::inference_router
