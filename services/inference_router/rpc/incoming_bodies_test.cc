// Bodies and events of any size share the link (docs/design/performance.md, point 2): they are sent
// in pieces between the frames of other requests. A router refuses bodies above its own limit
// without harm to other requests, and each side still understands the previous version.
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <mutex>

#include "services/inference_router/rpc/testing/link_fixture.h"
#include "services/inference_router/rpc/testing/silent_router.h"

namespace tollgate::inference_router {
namespace {

using namespace testing;  // NOLINT: the router and its client

// Bytes without a period, so that a piece at a wrong offset is detected.
std::string Body(size_t bytes) {
  std::string body(bytes, '\0');
  uint32_t state = 1;
  for (char& byte : body) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return body;
}

GenerateRequest WithBody(std::string model, std::string body) {
  GenerateRequest request = Request(std::move(model), 1);
  request.set_members_json(std::move(body));
  return request;
}

// Stores the bodies by model, in the order of arrival.
class LinkPiecesTest : public LinkTest {
 protected:
  void StartKeeper(BodyLimits limits) {
    StartRouter(
        [this](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
          {
            std::lock_guard lock(mutex_);
            order_.push_back(request.model());
            bodies_[request.model()] = request.members_json();
          }
          co_await sink->Send(EndEvent());
        },
        limits);
  }
  std::mutex mutex_;
  std::vector<std::string> order_;
  std::map<std::string, std::string> bodies_;
};

Task<void> ReceiveInto(InferenceClient& client, GenerateRequest request, int& good) {
  const Received received = co_await Receive(client.Start(std::move(request)));
  good += received.ended && !received.error && received.sent ? 1 : 0;
}

TEST_P(LinkPiecesTest, LargeBodiesArriveWholeAndSmallRequestsPassThem) {
  StartKeeper({.max_body_bytes = 32 << 20});
  const std::string large = Body(24 * kMiB + 5);
  const std::string other = Body(5 * kMiB);
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    int good = 0;
    loop.Spawn(ReceiveInto(*client_, WithBody("large", large), good));
    loop.Spawn(ReceiveInto(*client_, WithBody("other", other), good));
    for (int i = 0; i < 20; ++i) {
      loop.Spawn(ReceiveInto(*client_, WithBody("small", "{}"), good));
    }
    while (good < 22) co_await loop.Sleep(1);
    co_return 0;
  });
  EXPECT_TRUE(bodies_["large"] == large);
  EXPECT_TRUE(bodies_["other"] == other);
  ASSERT_EQ(order_.size(), 22u);
  EXPECT_EQ(order_[20], "other") << "the bodies take turns";
  EXPECT_EQ(order_[21], "large");
}

TEST_P(LinkPiecesTest, EachSizeAroundAPieceArrivesWhole) {
  StartKeeper({.max_body_bytes = 4 << 20});
  for (const size_t bytes : {size_t{0}, kLinkPieceBytes - 1, kLinkPieceBytes, kLinkPieceBytes + 1,
                             2 * kLinkPieceBytes, 4 * kLinkPieceBytes + 1}) {
    const std::string body = Body(bytes);
    const Received received = Send(WithBody("m", body));
    EXPECT_TRUE(received.ended && !received.error) << bytes;
    EXPECT_TRUE(bodies_["m"] == body) << bytes;
  }
}

TEST_P(LinkPiecesTest, ABodyAboveTheRoutersLimitFailsAloneAndUnsent) {
  StartRouter(Count, {.max_body_bytes = kMiB});
  RunOn(loop(), [&](Loop&) -> Task<int> {
    // Larger than the window, so the request runs until its events are taken.
    auto running = client_->Start(Request(std::string(1'000, 'm'), 1'000));
    EXPECT_TRUE((co_await running->Next()).ok());
    for (const size_t bytes : {kMiB + 1, 8 * kMiB}) {
      const Received refused = co_await Receive(client_->Start(BigRequest(bytes)));
      EXPECT_TRUE(refused.error && refused.error->id == ErrorId::kRequestTooLarge) << bytes;
      EXPECT_FALSE(refused.sent) << "the router settles nothing: the gateway must void the hold";
    }
    EXPECT_TRUE((co_await Receive(client_->Start(BigRequest(kMiB)))).ended);
    EXPECT_TRUE((co_await Receive(std::move(running))).ended);
    // Direct calls within one process have the same limit.
    const Received direct =
        co_await Receive(router_->link().StartDirect(loop(), BigRequest(kMiB + 1)));
    EXPECT_TRUE(direct.error && direct.error->id == ErrorId::kRequestTooLarge);
    EXPECT_FALSE(direct.sent);
    co_return 0;
  });
  EXPECT_EQ(router_->link().running(), 0);
}

TEST_P(LinkPiecesTest, ALeftBodyIsForgottenOnBothSides) {
  StartKeeper({.max_body_bytes = 32 << 20, .max_incomplete_bytes = 1});
  const std::string body = Body(20 * kMiB);
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    for (int turns = 0; turns < 40; turns += 5) {
      auto left = client_->Start(WithBody("left", body));
      for (int i = 0; i < turns; ++i) co_await loop.Sleep(0);
    }
    // If an incomplete body were left behind, the router would refuse this one.
    EXPECT_TRUE((co_await Receive(client_->Start(WithBody("next", Body(kMiB))))).sent);
    co_return 0;
  });
  EXPECT_EQ(bodies_["next"].size(), kMiB);
}

TEST_P(LinkPiecesTest, ALargeEventArrivesWholeAndInOrder) {
  const std::string large = Body(9 * kMiB);
  StartRouter([&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    if (request.model() == "large") {
      co_await sink->Send(TextEvent("before"));
      co_await sink->Send(TextEvent(large));
      co_await sink->Send(TextEvent("after"));
    }
    co_await sink->Send(EndEvent());
  });
  const Received received = Ask("large", 1);
  ASSERT_TRUE(received.ended);
  ASSERT_EQ(received.texts.size(), 3u);
  EXPECT_EQ(received.texts[0], "before");
  EXPECT_TRUE(received.texts[1] == large);
  EXPECT_EQ(received.texts[2], "after");
}

TEST_P(LinkPiecesTest, AnEventAboveTheLimitFailsItsRequestOnly) {
  std::promise<void> cancelled;
  StartRouter([&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
    if (request.model() == "huge") {
      sink->OnCancel([&] { cancelled.set_value(); });
      co_await sink->Send(TextEvent(std::string(kMaxEventBytes + 1, 'x')));
      Loop& here = *Loop::Current();
      while (!sink->cancelled()) co_await here.Sleep(1);
      co_return;
    }
    co_await Count(std::move(request), std::move(sink));
  });
  RunOn(loop(), [&](Loop&) -> Task<int> {
    auto running = client_->Start(Request(std::string(1'000, 'm'), 1'000));
    EXPECT_TRUE((co_await running->Next()).ok());
    const Received huge = co_await Receive(client_->Start(Request("huge", 1)));
    EXPECT_TRUE(huge.error && huge.error->id == ErrorId::kServerError);
    EXPECT_TRUE((co_await Receive(std::move(running))).ended);
    co_return 0;
  });
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

INSTANTIATE_TEST_SUITE_P(Transport, LinkPiecesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Tcp" : "InProcess"; });

// The router's side, with a gateway that violates the protocol or has another version.
class RawLinkTest : public LinkTest {
 protected:
  using Frame = inference::v1::LinkRequestFrame;

  void Open(BodyLimits limits, bool pieces = true) {
    router_ = std::make_unique<Router>(router_loops_, Count, 0, limits);
    if (pieces) context_.AddMetadata(kLinkPiecesKey, "1");
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(64 << 20);
    stub_ = inference::v1::InferenceService::NewStub(
        grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(router_->port()),
                                  grpc::InsecureChannelCredentials(), arguments));
    link_ = stub_->Link(&context_);
  }
  void TearDown() override {
    context_.TryCancel();
    link_.reset();
    LinkTest::TearDown();
  }
  Frame& Add(uint64_t id) {
    Frame& frame = *message_.add_frames();
    frame.set_stream_id(id);
    return frame;
  }
  void Begin(uint64_t id, int64_t bytes) {
    auto& start = *Add(id).mutable_start_in_pieces();
    start.set_body_bytes(bytes);
    *start.mutable_request() = Request("m" + std::to_string(id), 1);
  }
  void Write() {
    ASSERT_TRUE(link_->Write(message_));
    message_.Clear();
  }
  // Reads up to the End of this stream.
  inference::v1::End End(uint64_t id) {
    inference::v1::LinkResponse response;
    while (link_->Read(&response)) {
      for (const auto& frame : response.frames()) {
        if (frame.stream_id() == id && frame.event().has_end()) return frame.event().end();
      }
    }
    ADD_FAILURE() << "the link broke";
    return {};
  }

  grpc::ClientContext context_;
  std::unique_ptr<inference::v1::InferenceService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<inference::v1::LinkRequest, inference::v1::LinkResponse>>
      link_;
  inference::v1::LinkRequest message_;
};

TEST_P(RawLinkTest, IncompleteBodiesAreBoundedInSum) {
  Open({.max_body_bytes = 1'000, .max_incomplete_bytes = 1'500});
  Begin(1, 1'000);
  Begin(2, 1'000);
  Begin(3, 1'000);
  Write();
  const inference::v1::End refused = End(3);
  EXPECT_TRUE(refused.not_run());
  EXPECT_EQ(refused.error().error(), "service_unavailable");
  // A completed and a cancelled body free their space.
  *Add(1).mutable_body_piece() = std::string(1'000, 'x');
  Add(2).mutable_cancel();
  Begin(4, 1'000);
  *Add(4).mutable_body_piece() = std::string(1'000, 'x');
  Write();
  EXPECT_FALSE(End(4).has_error());
}

TEST_P(RawLinkTest, MalformedPiecesEndTheirRequestOnly) {
  Open({.max_body_bytes = 1'000});
  Begin(1, 10);
  *Add(1).mutable_body_piece() = std::string(11, 'x');
  Write();
  EXPECT_EQ(End(1).error().error(), "server_error");
  *Add(1).mutable_body_piece() = "late";
  Begin(2, 0);
  Write();
  EXPECT_TRUE(End(2).not_run());
  Begin(3, -1);
  Write();
  EXPECT_TRUE(End(3).not_run());
  Begin(4, INT64_MAX);
  Write();
  EXPECT_EQ(End(4).error().error(), "request_too_large");
  *Add(5).mutable_start() = Request("m", 1);
  Write();
  EXPECT_FALSE(End(5).has_error());
}

INSTANTIATE_TEST_SUITE_P(Tcp, RawLinkTest, ::testing::Values(true));

class LinkVersionsTest : public LinkTest {};

TEST_P(LinkVersionsTest, ARouterWithoutPiecesGetsEachBodyInOneFrame) {
  SilentRouter old(SilentRouter::Does::kTellBodyBytes, false);
  Connect(grpc::CreateChannel(old.target(), grpc::InsecureChannelCredentials()));
  const Received received = Send(BigRequest(10 * kMiB));
  ASSERT_TRUE(received.ended);
  EXPECT_EQ(received.texts.at(0), std::to_string(10 * kMiB));
  const Received refused = Send(BigRequest(kMaxUnsplitBodyBytes + 1));
  EXPECT_TRUE(refused.error && refused.error->id == ErrorId::kServiceUnavailable);
  EXPECT_FALSE(refused.sent);
  EXPECT_EQ(Send(BigRequest(7)).texts.at(0), "7") << "the link lives";
}

TEST_P(LinkVersionsTest, AGatewayWithoutPiecesGetsEachEventInOneFrame) {
  const size_t bytes = 2 * kMiB;
  Router router(router_loops_,
                [&](GenerateRequest request, std::shared_ptr<EventSink> sink) -> Task<void> {
                  co_await sink->Send(TextEvent(std::string(bytes, 'x')));
                  co_await sink->Send(EndEvent());
                });
  grpc::ClientContext context;
  auto stub = inference::v1::InferenceService::NewStub(router.Tcp());
  auto link = stub->Link(&context);
  inference::v1::LinkRequest request;
  request.add_frames()->set_stream_id(1);
  *request.mutable_frames(0)->mutable_start() = Request("m", 1);
  ASSERT_TRUE(link->Write(request));
  inference::v1::LinkResponse response;
  ASSERT_TRUE(link->Read(&response));
  EXPECT_EQ(response.frames(0).event().delta().content_json().size(), bytes);
  context.TryCancel();
  link->Finish();
}

INSTANTIATE_TEST_SUITE_P(Tcp, LinkVersionsTest, ::testing::Values(true));

}  // namespace
}  // namespace tollgate::inference_router
