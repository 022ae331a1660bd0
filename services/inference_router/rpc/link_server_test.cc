// Server and client of the shared token stream (docs/design/performance.md, point 2): events arrive
// complete and in order, a slow receiver slows its producer down, a cancel reaches the producer, a
// broken link ends every request on both sides, and links reconnect.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "common/clients/link_client.h"
#include "common/rpc/link_protocol.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"
#include "services/inference_router/rpc/link_server.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;
using inference::v1::GenerateRequest;
using ::tollgate::testing::RunOn;

Event TextEvent(std::string text) {
  Event event;
  event.mutable_delta()->set_content_json(std::move(text));
  return event;
}

Event EndEvent() {
  Event event;
  event.mutable_end();
  return event;
}

// Sends max_tokens numbered deltas, then the end.
Task<void> Count(GenerateRequest request, std::shared_ptr<EventSink> sink) {
  for (int64_t i = 0; i < request.max_tokens(); ++i) {
    bool going = co_await sink->Send(TextEvent(request.model() + ":" + std::to_string(i)));
    if (!going) co_return;
  }
  co_await sink->Send(EndEvent());
}

Task<Result<inference::v1::CountTokensResponse>> CountLetters(
    inference::v1::CountTokensRequest request) {
  if (request.members_json().empty()) co_return Unavailable("nothing to count");
  inference::v1::CountTokensResponse response;
  response.set_counted(true);
  response.set_prompt_tokens(static_cast<int64_t>(request.members_json().size()));
  co_return response;
}

class Router {
 public:
  Router(LoopPool& loops, GenerateHandler handler, int port = 0)
      : link_(LinkServer::Make(loops, std::move(handler), CountLetters)) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(link_->service());
    server_ = builder.BuildAndStart();
  }
  ~Router() { Stop(); }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  LinkServer& link() { return *link_; }
  int port() const { return port_; }
  std::shared_ptr<grpc::Channel> InProcess() { return server_->InProcessChannel({}); }
  std::shared_ptr<grpc::Channel> Tcp() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

 private:
  std::unique_ptr<LinkServer> link_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Received {
  std::vector<std::string> texts;
  bool ended = false;
  std::optional<Error> error;
};

Task<Received> Receive(std::unique_ptr<Generation> generation) {
  Received received;
  while (true) {
    auto events = co_await generation->Next();
    if (!events) {
      received.error = events.error();
      co_return received;
    }
    for (const Event& event : *events) {
      if (event.has_delta()) received.texts.push_back(event.delta().content_json());
      if (event.has_end()) {
        received.ended = true;
        co_return received;
      }
    }
  }
}

GenerateRequest Request(std::string model, int64_t tokens) {
  GenerateRequest request;
  request.set_model(std::move(model));
  request.set_max_tokens(tokens);
  return request;
}

// A router and a client with their own loops; the client is destroyed on its loop.
class LinkTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    router_loops_.Start();
    gateway_loops_.Start();
  }
  void TearDown() override {
    Disconnect();
    router_.reset();
  }
  void StartRouter(GenerateHandler handler) {
    router_ = std::make_unique<Router>(router_loops_, std::move(handler));
    Connect(GetParam() ? router_->Tcp() : router_->InProcess());
  }
  void Connect(std::shared_ptr<grpc::Channel> channel) {
    client_ = MakeLinkClient(loop(), {std::move(channel)});
  }
  void Disconnect() {
    if (!client_) return;
    std::promise<void> gone;
    loop().Post([&] {
      client_.reset();
      gone.set_value();
    });
    gone.get_future().wait();
  }
  Loop& loop() { return gateway_loops_.loop(0); }
  Received Ask(std::string model, int64_t tokens) {
    return RunOn(loop(), [&](Loop&) -> Task<Received> {
      auto generation = client_->Start(Request(model, tokens));
      co_return co_await Receive(std::move(generation));
    });
  }

  LoopPool router_loops_{2};
  LoopPool gateway_loops_{1};
  std::unique_ptr<Router> router_;
  std::unique_ptr<InferenceClient> client_;
};

TEST_P(LinkTest, TokensAreCountedByAConnectedRouter) {
  StartRouter(Count);
  const auto count = [&](std::string members) {
    inference::v1::CountTokensRequest request;
    request.set_members_json(std::move(members));
    return RunOn(loop(), [&](Loop&) -> Task<Result<inference::v1::CountTokensResponse>> {
      co_return co_await client_->CountTokens(request);
    });
  };
  const auto counted = count("four");  // the link is still connecting
  ASSERT_TRUE(counted.ok()) << counted.error().ToString();
  EXPECT_EQ(counted->prompt_tokens(), 4);
  const auto refused = count("");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id, ErrorId::kServiceUnavailable);
  if (!GetParam()) return;  // an in-process channel must not outlive its server
  router_->Stop();
  EXPECT_EQ(count("four").error().id, ErrorId::kServiceUnavailable);
}

TEST_P(LinkTest, EventsArriveInOrderAndOnce) {
  StartRouter(Count);
  Received received = Ask("m", 5'000);
  ASSERT_TRUE(received.ended);
  ASSERT_EQ(received.texts.size(), 5'000u);
  for (size_t i = 0; i < received.texts.size(); ++i)
    EXPECT_EQ(received.texts[i], "m:" + std::to_string(i));
}

TEST_P(LinkTest, ManyRequestsShareTheLinkAndKeepTheirEventsApart) {
  StartRouter(Count);
  constexpr int kRequests = 1'000;
  std::atomic<int> good{0};
  std::atomic<int> done{0};
  std::promise<void> all;
  loop().Post([&] {
    for (int i = 0; i < kRequests; ++i) {
      auto receive = [](InferenceClient& client, int i, std::atomic<int>& good,
                        std::atomic<int>& done, std::promise<void>& all) -> Task<void> {
        std::string name = "r" + std::to_string(i);
        Received received = co_await Receive(client.Start(Request(name, 20)));
        bool whole = received.ended && received.texts.size() == 20;
        for (size_t t = 0; whole && t < 20; ++t)
          whole = received.texts[t] == name + ":" + std::to_string(t);
        if (whole) ++good;
        if (++done == kRequests) all.set_value();
      };
      loop().Spawn(receive(*client_, i, good, done, all));
    }
  });
  all.get_future().wait();
  EXPECT_EQ(good, kRequests);
  EXPECT_EQ(router_->link().running(), 0);
}

TEST_P(LinkTest, ASlowReceiverSuspendsItsProducer) {
  std::atomic<int64_t> sent{0};
  StartRouter([&sent](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    for (int i = 0; i < 2'000; ++i) {
      if (!co_await sink->Send(TextEvent(std::string(1'000, 'x')))) co_return;
      ++sent;
    }
    co_await sink->Send(EndEvent());
  });
  Received received = RunOn(loop(), [&](Loop& loop) -> Task<Received> {
    auto generation = client_->Start(Request("m", 1));
    // Wait until the producer is suspended: the same count twice.
    int64_t before = -1;
    while (sent == 0 || before != sent) {
      before = sent;
      co_await loop.Sleep(30);
    }
    EXPECT_LE(sent * 1'000, kLinkWindowBytes + 2'000);
    co_return co_await Receive(std::move(generation));
  });
  EXPECT_TRUE(received.ended);
  EXPECT_EQ(received.texts.size(), 2'000u);
}

TEST_P(LinkTest, ACancelReachesTheProducer) {
  std::promise<void> cancelled;
  StartRouter([&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    sink->OnCancel([&] { cancelled.set_value(); });
    while (co_await sink->Send(TextEvent("x"))) co_await router_loops_.loop(0).Sleep(0);
    EXPECT_TRUE(sink->cancelled());
  });
  RunOn(loop(), [&](Loop&) -> Task<bool> {
    auto generation = client_->Start(Request("m", 1));
    (void)co_await generation->Next();
    co_return true;  // destroying the generation cancels it
  });
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST_P(LinkTest, ABrokenLinkEndsTheRequestOnBothSides) {
  std::promise<void> cancelled;
  StartRouter([&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    sink->OnCancel([&] { cancelled.set_value(); });
    co_await sink->Send(TextEvent("x"));
    Loop& here = *Loop::Current();
    while (!sink->cancelled()) co_await here.Sleep(1);
  });
  std::thread stopper;
  Received received = RunOn(loop(), [&](Loop&) -> Task<Received> {
    auto generation = client_->Start(Request("m", 1));
    (void)co_await generation->Next();
    EXPECT_TRUE(generation->sent());
    stopper = std::thread([&] { router_->Stop(); });
    co_return co_await Receive(std::move(generation));
  });
  stopper.join();
  EXPECT_FALSE(received.ended);
  ASSERT_TRUE(received.error.has_value());
  EXPECT_EQ(received.error->id, ErrorId::kServiceUnavailable);
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST_P(LinkTest, ADrainingRouterRefusesNewRequestsAndFinishesTheRunningOnes) {
  StartRouter(Count);
  RunOn(loop(), [&](Loop&) -> Task<int> {
    // Larger than the window, so that it runs until its events are taken.
    auto running = client_->Start(Request(std::string(1'000, 'm'), 1'000));
    auto first = co_await running->Next();
    EXPECT_TRUE(first.ok());
    router_->link().Drain();
    auto refused = client_->Start(Request("m", 1));
    auto events = co_await refused->Next();
    // Refused by the router, or not sent at all: the gateway must void the hold.
    EXPECT_EQ(events ? events->front().end().error().error() : events.error().row().name,
              "service_unavailable");
    EXPECT_FALSE(refused->sent());
    Received received = co_await Receive(std::move(running));
    EXPECT_TRUE(received.ended);
    co_return 0;
  });
}

TEST_P(LinkTest, CancelledRequestsLeaveNoState) {
  StartRouter(Count);
  int taken = RunOn(loop(), [&](Loop&) -> Task<int> {
    int taken = 0;
    for (int i = 0; i < 500; ++i) {
      auto generation = client_->Start(Request("m", 50));
      if (i % 3 == 0) continue;  // before it is written
      auto events = co_await generation->Next();
      if (events) taken += static_cast<int>(events->size());
      if (i % 3 == 1) generation->Cancel();
    }
    co_return taken;
  });
  EXPECT_GT(taken, 0);
  EXPECT_TRUE(Ask("last", 10).ended);
  // The link is ordered: the cancels were processed before the last request ended.
  EXPECT_EQ(router_->link().running(), 0);
}

INSTANTIATE_TEST_SUITE_P(Transport, LinkTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tcp" : "InProcess"; });

class LinkReconnectTest : public LinkTest {};

TEST_P(LinkReconnectTest, WithoutARouterTheRequestFailsUnsent) {
  Connect(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()));
  RunOn(loop(), [&](Loop&) -> Task<bool> {
    auto generation = client_->Start(Request("m", 1));
    auto events = co_await generation->Next();
    EXPECT_FALSE(events.ok());
    EXPECT_FALSE(generation->sent());
    co_return true;
  });
}

TEST_P(LinkReconnectTest, ALinkReconnectsToARestartedRouter) {
  StartRouter(Count);
  EXPECT_TRUE(Ask("m", 1).ended);
  int port = router_->port();
  router_->Stop();
  router_ = std::make_unique<Router>(router_loops_, Count, port);
  Received received;
  for (int attempt = 0; attempt < 20 && !received.ended; ++attempt) received = Ask("again", 3);
  EXPECT_TRUE(received.ended);
  EXPECT_EQ(received.texts.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Tcp, LinkReconnectTest, ::testing::Values(true));

TEST(GenerateTest, GenerateStreamsTheSameEvents) {
  LoopPool loops(1);
  loops.Start();
  Router router(loops, Count);
  auto stub = inference::v1::InferenceService::NewStub(router.Tcp());
  grpc::ClientContext context;
  auto reader = stub->Generate(&context, Request("m", 300));
  inference::v1::GenerateResponse response;
  int deltas = 0;
  bool ended = false;
  while (reader->Read(&response)) {
    deltas += response.event().has_delta();
    ended = response.event().has_end();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(deltas, 300);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace tollgate::inference_router
