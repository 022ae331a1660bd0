// Tests streams served by PushHub and received by Watch.
#include "common/rpc/push_hub.h"

#include <gtest/gtest.h>

#include "common/rpc/testing/auth_server.h"
#include "common/rpc/watch.h"

namespace tollgate::rpc {
namespace {

using testing::AuthService;
using testing::WatchKeysRequest;
using testing::WatchKeysResponse;
using tollgate::testing::RunOn;

class PushHubTest : public testing::RpcTest {};

struct Received {
  std::vector<int64_t> versions;
  int pings = 0;
  int lost = 0;
};

WatchOptions<WatchKeysRequest, WatchKeysResponse> Options(AuthService::Stub& stub,
                                                          Received& received, Notify& changed) {
  WatchOptions<WatchKeysRequest, WatchKeysResponse> options;
  options.open = [&stub](auto* context, auto* request, auto* reactor) {
    stub.async()->WatchKeys(context, request, reactor);
  };
  options.make_request = [&received] {
    WatchKeysRequest request;
    request.set_after_version(received.versions.empty() ? 0 : received.versions.back());
    return request;
  };
  options.on_message = [&](WatchKeysResponse message) {
    if (message.version() < 0) {
      ++received.pings;
    } else {
      received.versions.push_back(message.version());
    }
    changed.NotifyAll();
  };
  options.on_lost = [&](const Error&) {
    ++received.lost;
    changed.NotifyAll();
  };
  return options;
}

TEST_P(PushHubTest, AStreamHasTheStateFirstThenEveryChangeInOrder) {
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    Received received;
    Notify changed(loop);
    Watch<WatchKeysRequest, WatchKeysResponse> watch(loop, Options(*stub_, received, changed));
    while (received.versions.empty()) co_await changed.Wait();
    for (int i = 101; i <= 600; ++i) server_->service->hub.Publish(testing::FakeAuth::Message(i));
    while (received.versions.size() < 501) co_await changed.Wait();
    for (size_t i = 0; i < received.versions.size(); ++i) {
      EXPECT_EQ(received.versions[i], static_cast<int64_t>(100 + i));
    }
    int pings = received.pings;
    while (received.pings < pings + 2) co_await changed.Wait();
    EXPECT_EQ(received.lost, 0);
    co_return 0;
  });
}

TEST_P(PushHubTest, AClosedHubEndsItsStreams) {
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    Received received;
    Notify changed(loop);
    Watch<WatchKeysRequest, WatchKeysResponse> watch(loop, Options(*stub_, received, changed));
    while (received.versions.empty()) co_await changed.Wait();
    server_->service->hub.Close();
    while (received.lost == 0) co_await changed.Wait();
    co_return 0;
  });
  while (server_->service->hub.subscribers() > 0) std::this_thread::yield();
}

// The subscriber continues where it was.
TEST_P(PushHubTest, AnOldStreamIsEndedAndOpenedAnew) {
  testing::AuthServer server(server_loops_, "127.0.0.1:0", /*max_stream_age_ms=*/200);
  const auto stub = AuthService::NewStub(
      grpc::CreateChannel(server.target(), grpc::InsecureChannelCredentials()));
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    Received received;
    Notify changed(loop);
    Watch<WatchKeysRequest, WatchKeysResponse> watch(loop, Options(*stub, received, changed));
    while (received.lost < 3) co_await changed.Wait();
    while (received.versions.size() < 4) co_await changed.Wait();
    EXPECT_EQ(received.versions, (std::vector<int64_t>{100, 200, 300, 400}));
    co_return 0;
  });
}

INSTANTIATE_TEST_SUITE_P(Transport, PushHubTest, testing::kTransports, testing::TransportName);

}  // namespace
}  // namespace tollgate::rpc
