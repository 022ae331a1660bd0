// Data that waits for a router is bounded and does not outlive its request. A router that is
// unreachable, stops reading, or is flooded by a client costs the gateway neither memory nor other
// requests. A gateway that stops reading does not cost the router any, either.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <thread>

#include "common/observability/held_metrics.h"
#include "common/observability/metrics.h"
#include "services/inference_router/rpc/testing/link_fixture.h"
#include "services/inference_router/rpc/testing/silent_router.h"

namespace tollgate::inference_router {
namespace {

using namespace testing;  // NOLINT: the router and its client

// Bytes that the process has allocated and not freed.
size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class LinkBoundsTest : public LinkTest {
 protected:
  // No process listens on port 1.
  void ConnectToNobody() {
    Connect(grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()));
  }
};

TEST_P(LinkBoundsTest, RequestsThatTimedOutWhileNoRouterWasReachableAreFreed) {
  ConnectToNobody();
  const size_t before = HeapBytes();
  RunOn(loop(), [&](Loop&) -> Task<int> {
    std::vector<std::unique_ptr<Generation>> waiting;
    for (int i = 0; i < 100; ++i) waiting.push_back(client_->Start(BigRequest(kMiB)));
    for (auto& generation : waiting) {
      const auto events = co_await generation->Next();
      EXPECT_FALSE(events.ok());
      if (!events.ok()) EXPECT_EQ(events.error().id, ErrorId::kServiceUnavailable);
      EXPECT_FALSE(generation->sent());
    }
    co_return 0;
  });
  EXPECT_LT(HeapBytes(), before + 4 * kMiB);
}

TEST_P(LinkBoundsTest, RequestsWhoseCallerLeftWhileNoRouterWasReachableAreFreed) {
  ConnectToNobody();
  const size_t before = HeapBytes();
  RunOn(loop(), [&](Loop&) -> Task<int> {
    for (int i = 0; i < 100; ++i) (void)client_->Start(BigRequest(kMiB));
    co_return 0;
  });
  EXPECT_LT(HeapBytes(), before + 4 * kMiB);
}

double GatewayQueuedBytes(const std::string& router) {
  return metrics::HeldGauge("tollgate_gateway_link_queued_bytes", "", {{"router", router}})
      ->Value();
}

TEST_P(LinkBoundsTest, WhatWaitsForARouterIsBoundedAndGoesWithItsCallers) {
  ConnectToNobody();
  RunOn(loop(), [&](Loop&) -> Task<int> {
    std::vector<std::unique_ptr<Generation>> waiting;
    for (int i = 0; i < 200; ++i) waiting.push_back(client_->Start(BigRequest(kMiB)));
    EXPECT_GE(GatewayQueuedBytes("none"), 127 * kMiB);
    EXPECT_LE(GatewayQueuedBytes("none"), 130 * kMiB);
    const auto events = co_await waiting.back()->Next();
    EXPECT_TRUE(!events.ok() && events.error().id == ErrorId::kServiceUnavailable);
    EXPECT_GT(events.error().retry_after_ms, 0);
    EXPECT_FALSE(waiting.back()->sent());
    waiting.clear();
    EXPECT_EQ(GatewayQueuedBytes("none"), 0);
    co_return 0;
  });
}

TEST_P(LinkBoundsTest, ARouterThatStopsReadingBoundsWhatTheGatewayQueues) {
  SilentRouter stopped(SilentRouter::Does::kReadNothing);
  Connect(grpc::CreateChannel(stopped.target(), grpc::InsecureChannelCredentials()));
  const size_t before = HeapBytes();
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    std::vector<std::unique_ptr<Generation>> started;
    // The first message fills the connection.
    started.push_back(client_->Start(BigRequest(8 * kMiB)));
    while (GatewayQueuedBytes("0") < static_cast<double>(kMiB)) co_await loop.Sleep(1);
    for (int i = 0; i < 1'000; ++i) started.push_back(client_->Start(BigRequest(kMiB)));
    EXPECT_LE(GatewayQueuedBytes("0"), 130 * kMiB);
    EXPECT_LT(HeapBytes(), before + 160 * kMiB);
    int refused = 0;
    for (auto& generation : started) {
      if (generation == started.front()) continue;
      const Received received = co_await Receive(std::move(generation));
      refused += received.error && received.error->id == ErrorId::kServiceUnavailable ? 1 : 0;
      EXPECT_FALSE(received.sent);
    }
    EXPECT_EQ(refused, 1'000) << "queued requests fail when the router has read nothing";
    started.clear();
    co_return 0;
  });
  Disconnect();
  EXPECT_EQ(GatewayQueuedBytes("0"), 0);
  EXPECT_LT(HeapBytes(), before + 8 * kMiB);
}

TEST_P(LinkBoundsTest, RequestsThatAStoppedRouterDidNotReadGoToAnotherOne) {
  SilentRouter stopped(SilentRouter::Does::kReadNothing);
  SilentRouter live(SilentRouter::Does::kTellBodyBytes, false);
  client_ = MakeLinkClient(
      loop(), {grpc::CreateChannel(stopped.target(), grpc::InsecureChannelCredentials()),
               grpc::CreateChannel(live.target(), grpc::InsecureChannelCredentials())});
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    // All requests may go to one router until both are connected.
    std::vector<std::unique_ptr<Generation>> lost;
    while (GatewayQueuedBytes("0") < static_cast<double>(kMiB)) {
      lost.push_back(client_->Start(BigRequest(4 * kMiB)));
      co_await loop.Sleep(5);
    }
    std::vector<std::unique_ptr<Generation>> started;
    for (int i = 0; i < 50; ++i) started.push_back(client_->Start(BigRequest(1'000)));
    int answered = 0;
    for (auto& generation : started) {
      const Received received = co_await Receive(std::move(generation));
      answered += received.ended && !received.error ? 1 : 0;
    }
    EXPECT_EQ(answered, 50);
    // Requests that were partly sent to the stopped router succeed, too, but later.
    for (auto& generation : lost) {
      const Received received = co_await Receive(std::move(generation));
      EXPECT_TRUE(received.ended && !received.error);
    }
    co_return 0;
  });
}

// 400 requests have windows of 100 MiB in total.
TEST_P(LinkBoundsTest, AGatewayThatStopsReadingBoundsWhatTheRouterQueues) {
  constexpr int kRequests = 400;
  constexpr int kEvents = 15;
  constexpr size_t kEventBytes = 16 * 1024;
  std::atomic<int> emitted{0};
  Router router(router_loops_, [&](GenerateRequest, std::shared_ptr<EventSink> sink) -> Task<void> {
    for (int i = 0; i < kEvents; ++i) {
      if (!co_await sink->Send(TextEvent(std::string(kEventBytes, 'x')))) co_return;
      ++emitted;
    }
    co_await sink->Send(EndEvent());
  });
  auto stub = inference::v1::InferenceService::NewStub(router.Tcp());
  grpc::ClientContext context;
  auto link = stub->Link(&context);
  inference::v1::LinkRequest request;
  for (int i = 1; i <= kRequests; ++i) {
    auto& frame = *request.add_frames();
    frame.set_stream_id(static_cast<uint64_t>(i));
    *frame.mutable_start() = Request("m", 1);
  }
  ASSERT_TRUE(link->Write(request));
  // Waits until all producers are suspended, when the count stays the same for a while.
  int before = -1;
  while (emitted == 0 || before != emitted) {
    before = emitted;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LE(static_cast<int64_t>(emitted) * static_cast<int64_t>(kEventBytes),
            kMaxLinkEventBytes + static_cast<int64_t>(16 * kMiB))
      << "the queue, one event, and what gRPC and the kernel hold";
  int ended = 0;
  inference::v1::LinkResponse response;
  while (ended < kRequests && link->Read(&response)) {
    for (const auto& frame : response.frames()) ended += frame.event().has_end() ? 1 : 0;
  }
  EXPECT_EQ(ended, kRequests) << "producers go on when the gateway reads again";
  EXPECT_EQ(emitted, kRequests * kEvents);
  context.TryCancel();
  link->Finish();
}

INSTANTIATE_TEST_SUITE_P(Tcp, LinkBoundsTest, ::testing::Values(true));

}  // namespace
}  // namespace tollgate::inference_router
