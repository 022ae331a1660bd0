// Server and client of the shared token stream (docs/design/performance.md, point 2): events arrive
// complete and in order, a slow receiver slows its producer down, a cancel reaches the producer, a
// broken link ends every request on both sides, and links reconnect.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/rpc/link_protocol.h"
#include "services/inference_router/rpc/testing/link_fixture.h"
#include "tests/support/port.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;
using inference::v1::GenerateRequest;
using ::tollgate::testing::RunOn;
using namespace testing;  // NOLINT: the router and its client

// Whether the condition becomes true within a minute.
bool Comes(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return done();
}

TEST_P(LinkTest, TokensAreCountedByAConnectedRouter) {
  StartRouter(Count, {.max_body_bytes = kDefaultRouterBodyBytes}, /*await_link=*/false);
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
    // Waits until the producer is suspended, when the count is the same twice.
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
    EXPECT_FALSE(sink->receiver_lost()) << "its caller left";
  });
  RunOn(loop(), [&](Loop&) -> Task<bool> {
    auto generation = client_->Start(Request("m", 1));
    (void)co_await generation->Next();
    co_return true;  // destroying the generation cancels it
  });
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_P(LinkTest, ABrokenLinkEndsTheRequestOnBothSides) {
  std::promise<void> cancelled;
  StartRouter([&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    sink->OnCancel([&] { cancelled.set_value(); });
    co_await sink->Send(TextEvent("x"));
    Loop& here = *Loop::Current();
    while (!sink->cancelled()) co_await here.Sleep(1);
    EXPECT_TRUE(sink->receiver_lost());
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
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_P(LinkTest, ADrainingRouterRefusesNewRequestsAndFinishesTheRunningOnes) {
  StartRouter(Count);
  RunOn(loop(), [&](Loop&) -> Task<int> {
    // Larger than the window, so the request runs until its events are taken.
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

// A stopping router waits for events that gateways have not taken, because an answer without its
// end would be cut off.
TEST_P(LinkTest, EventsAreUnsentUntilTheGatewayTakesThem) {
  if (!GetParam()) return;       // no window within a process
  constexpr int kRequests = 16;  // 3.8 MB in total, more than the window of a connection
  constexpr int kEvents = 12;
  StartRouter([](GenerateRequest, std::shared_ptr<EventSink> sink) -> Task<void> {
    for (int i = 0; i < kEvents; ++i) co_await sink->Send(TextEvent(std::string(20'000, 'x')));
    co_await sink->Send(EndEvent());
  });
  EXPECT_TRUE(router_->link().all_sent());
  const auto stub = inference::v1::InferenceService::NewStub(router_->Tcp());
  grpc::ClientContext context;
  const auto stream = stub->Link(&context);
  inference::v1::LinkRequest start;
  for (int i = 1; i <= kRequests; ++i) {
    auto& frame = *start.add_frames();
    frame.set_stream_id(static_cast<uint64_t>(i));
    *frame.mutable_start() = Request("m", 1);
  }
  ASSERT_TRUE(stream->Write(start));
  // All requests have ended, and their events are waiting.
  EXPECT_TRUE(Comes([&] { return !router_->link().all_sent() && router_->link().running() == 0; }));
  inference::v1::LinkResponse message;
  int taken = 0;
  int ended = 0;
  while (ended < kRequests && stream->Read(&message)) {
    for (const auto& event : message.frames()) {
      taken += event.event().has_delta() ? 1 : 0;
      ended += event.event().has_end() ? 1 : 0;
    }
  }
  EXPECT_EQ(taken, kRequests * kEvents);
  EXPECT_TRUE(Comes([&] { return router_->link().all_sent(); }));
  context.TryCancel();
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
  // The link is ordered, so the cancels were processed before the last request ended.
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
  const test::TestPort port;
  router_ = std::make_unique<Router>(router_loops_, Count, port.number());
  Connect(router_->Tcp());
  AwaitLink();
  EXPECT_TRUE(Ask("m", 1).ended);
  router_->Stop();
  router_ = std::make_unique<Router>(router_loops_, Count, port.number());
  Received received;
  EXPECT_TRUE(Comes([&] {
    received = Ask("again", 3);
    return received.ended;
  }));
  EXPECT_EQ(received.texts.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Tcp, LinkReconnectTest, ::testing::Values(true));

TEST(GenerateTest, GenerateStreamsTheSameEvents) {
  LoopPool loops(1);
  loops.Start();
  Router router(loops, Count);
  auto stub = inference::v1::InferenceService::NewStub(router.Tcp());
  grpc::ClientContext context;
  context.set_wait_for_ready(true);  // connecting may take longer than one attempt
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
