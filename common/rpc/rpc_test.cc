// The bridge between gRPC and coroutines: calls, errors over both transports, streams that push,
// late servers. The services are those of our own protos, played by small fakes.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "common/base/clock.h"
#include "common/rpc/call.h"
#include "common/rpc/channel.h"
#include "common/rpc/push_hub.h"
#include "common/rpc/server.h"
#include "common/rpc/watch.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"

namespace tollgate::rpc {
namespace {

using auth::v1::AuthService;
using auth::v1::VerifyKeyRequest;
using auth::v1::VerifyKeyResponse;
using auth::v1::WatchKeysRequest;
using auth::v1::WatchKeysResponse;
using Async = AuthService::StubInterface::async_interface;
using testing::RunOn;

// Answers by what the digest says.
class FakeAuth : public AuthService::CallbackService {
 public:
  explicit FakeAuth(LoopPool& loops)
      : loops_(loops),
        hub(loops.loop(0), {.ping_ms = 30, .make_ping = [] { return Message(-1); }}) {}
  ~FakeAuth() override { workers_.Stop(); }

  static WatchKeysResponse Message(int64_t version) {
    WatchKeysResponse message;
    message.set_version(version);
    return message;
  }

  grpc::ServerUnaryReactor* VerifyKey(grpc::CallbackServerContext* context,
                                      const VerifyKeyRequest* request,
                                      VerifyKeyResponse* response) override {
    const std::string& what = request->key_digest();
    if (what == "worker") {
      return ServeBlocking(context, workers_, [=]() -> Result<void> {
        response->set_found(Loop::Current() == nullptr);
        return {};
      });
    }
    if (what == "loop") {
      return ServeOnLoop(context, loops_.loop(0), [=, this]() -> Task<Result<void>> {
        co_await loops_.loop(0).Sleep(5);
        response->set_found(Loop::Current() == &loops_.loop(0));
        co_return Result<void>();
      });
    }
    if (what == "never") {
      never_started = true;
      return ServeOnLoop(context, loops_.loop(0), [=, this]() -> Task<Result<void>> {
        while (!context->IsCancelled()) co_await loops_.loop(0).Sleep(5);
        never_cancelled = true;
        co_return Result<void>();
      });
    }
    if (what == "bare status") {
      auto* reactor = context->DefaultReactor();
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, "no"});
      return reactor;
    }
    Error error{.id = ErrorId::kTokenLimited,
                .message = what,
                .param = "p",
                .retry_after_ms = 1234,
                .internal = what};
    return Answer(context, Fail{error});
  }

  grpc::ServerWriteReactor<WatchKeysResponse>* WatchKeys(grpc::CallbackServerContext*,
                                                         const WatchKeysRequest* request) override {
    return hub.Open([&] {
      std::vector<WatchKeysResponse> first;
      first.push_back(Message(request->after_version() + 100));
      return first;
    });
  }

  std::atomic<bool> never_started{false};
  std::atomic<bool> never_cancelled{false};

 private:
  LoopPool& loops_;
  WorkerPool workers_{2, 100, "test"};

 public:
  PushHub<WatchKeysResponse> hub;
};

struct Server {
  explicit Server(LoopPool& loops, const std::string& address = "127.0.0.1:0")
      : service(std::make_unique<FakeAuth>(loops)) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    EXPECT_NE(server, nullptr);
    channels.SetServer(server.get());
  }
  ~Server() { server->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return "127.0.0.1:" + std::to_string(port); }

  std::unique_ptr<FakeAuth> service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  ChannelSource channels;
};

Task<Result<VerifyKeyResponse>> Verify(Loop& loop, AuthService::Stub& stub, std::string what,
                                       int64_t timeout_ms = 5'000) {
  VerifyKeyRequest request;
  request.set_key_digest(what);
  return Unary(loop, stub.async(), &Async::VerifyKey, std::move(request), timeout_ms);
}

class RpcTest : public ::testing::TestWithParam<bool> {
 protected:
  RpcTest() {
    server_loops_.Start();
    loops_.Start();
    server_.emplace(server_loops_);
    stub_ = AuthService::NewStub(
        server_->channels.Channel(GetParam() ? server_->target() : std::string("inproc:")));
  }
  Loop& loop() { return loops_.loop(0); }
  Result<VerifyKeyResponse> Call(const std::string& what, int64_t timeout_ms = 5'000) {
    return RunOn(loop(), [&](Loop& loop) { return Verify(loop, *stub_, what, timeout_ms); });
  }

  LoopPool server_loops_{1};
  LoopPool loops_{1};
  std::optional<Server> server_;
  std::unique_ptr<AuthService::Stub> stub_;
};

TEST_P(RpcTest, HandlersRunOnWorkersAndOnLoops) {
  auto worker = Call("worker");
  ASSERT_TRUE(worker.ok());
  EXPECT_TRUE(worker->found());
  auto on_loop = Call("loop");
  ASSERT_TRUE(on_loop.ok());
  EXPECT_TRUE(on_loop->found());
}

TEST_P(RpcTest, ErrorsKeepTheirRowAndFields) {
  auto result = Call("slow down");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kTokenLimited);
  EXPECT_EQ(result.error().message, "slow down");
  EXPECT_EQ(result.error().param, "p");
  EXPECT_EQ(result.error().retry_after_ms, 1234);
}

// pitfalls.md: details above 8 KiB would arrive as RESOURCE_EXHAUSTED without a detail.
TEST_P(RpcTest, LongTextsAreCutAndTheRowSurvives) {
  auto result = Call(std::string(20'000, 'x'));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kTokenLimited);
  EXPECT_EQ(result.error().message.substr(0, 3), "xxx");
  EXPECT_LT(result.error().message.size(), 2'000u);
}

TEST_P(RpcTest, AStatusWithoutDetailNeverBlamesTheCaller) {
  auto result = Call("bare status");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServerError);
}

TEST_P(RpcTest, TheDeadlineEndsACall) {
  auto result = Call("never", 50);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

TEST_P(RpcTest, ManyCallsAtOnceAllComeBack) {
  int found = RunOn(loop(), [&](Loop& loop) -> Task<int> {
    int found = 0;
    int open = 500;
    Event done(loop);
    auto one = [](Loop& loop, AuthService::Stub& stub, int& found, int& open,
                  Event& done) -> Task<void> {
      auto result = co_await Verify(loop, stub, "loop", 20'000);
      if (result.ok() && result->found()) ++found;
      if (--open == 0) done.Set();
    };
    for (int i = 0; i < 500; ++i) loop.Spawn(one(loop, *stub_, found, open, done));
    co_await done.Wait();
    co_return found;
  });
  EXPECT_EQ(found, 500);
}

struct Heard {
  std::vector<int64_t> versions;
  int pings = 0;
  int lost = 0;
};

WatchOptions<WatchKeysRequest, WatchKeysResponse> Options(AuthService::Stub& stub, Heard& heard,
                                                          Notify& changed) {
  WatchOptions<WatchKeysRequest, WatchKeysResponse> options;
  options.open = [&stub](auto* context, auto* request, auto* reactor) {
    stub.async()->WatchKeys(context, request, reactor);
  };
  options.make_request = [&heard] {
    WatchKeysRequest request;
    request.set_after_version(heard.versions.empty() ? 0 : heard.versions.back());
    return request;
  };
  options.on_message = [&](WatchKeysResponse message) {
    if (message.version() < 0) {
      ++heard.pings;
    } else {
      heard.versions.push_back(message.version());
    }
    changed.NotifyAll();
  };
  options.on_lost = [&](const Error&) {
    ++heard.lost;
    changed.NotifyAll();
  };
  return options;
}

TEST_P(RpcTest, APushStreamBeginsWithTheStateThenTellsEveryChangeInOrder) {
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    Heard heard;
    Notify changed(loop);
    Watch<WatchKeysRequest, WatchKeysResponse> watch(loop, Options(*stub_, heard, changed));
    while (heard.versions.empty()) co_await changed.Wait();
    for (int i = 101; i <= 600; ++i) server_->service->hub.Publish(FakeAuth::Message(i));
    while (heard.versions.size() < 501) co_await changed.Wait();
    for (size_t i = 0; i < heard.versions.size(); ++i) {
      EXPECT_EQ(heard.versions[i], static_cast<int64_t>(100 + i));
    }
    int pings = heard.pings;
    while (heard.pings < pings + 2) co_await changed.Wait();
    EXPECT_EQ(heard.lost, 0);
    co_return 0;
  });
}

TEST_P(RpcTest, AClosedHubEndsItsStreams) {
  RunOn(loop(), [&](Loop& loop) -> Task<int> {
    Heard heard;
    Notify changed(loop);
    Watch<WatchKeysRequest, WatchKeysResponse> watch(loop, Options(*stub_, heard, changed));
    while (heard.versions.empty()) co_await changed.Wait();
    server_->service->hub.Close();
    while (heard.lost == 0) co_await changed.Wait();
    co_return 0;
  });
  while (server_->service->hub.subscribers() > 0) std::this_thread::yield();
}

INSTANTIATE_TEST_SUITE_P(Transport, RpcTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Tcp" : "InProcess"; });

Task<void> CallForAMinute(Loop& loop, AuthService::Stub& stub) {
  auto result = co_await Verify(loop, stub, "never", 60'000);
  EXPECT_FALSE(result.ok());
}

TEST(Rpc, ACancelledCallIsCancelledAtTheServer) {
  using asio::experimental::awaitable_operators::operator||;
  LoopPool loops(1);
  loops.Start();
  Server server(loops);
  auto stub = AuthService::NewStub(server.channels.Channel("inproc:"));
  RunOn(loops.loop(0), [&](Loop& loop) -> Task<int> {
    auto first = co_await (CallForAMinute(loop, *stub) || loop.Sleep(30));
    EXPECT_EQ(first.index(), 1u);
    co_return 0;
  });
  while (!server.service->never_cancelled) std::this_thread::yield();
}

// With gRPC's default back-off this takes more than a second after the server is there.
TEST(Rpc, AServerThatStartsLateIsFoundSoon) {
  LoopPool loops(1);
  loops.Start();
  int port = 0;
  {
    port = Server(loops).port;
  }
  ChannelSource source;
  auto stub = AuthService::NewStub(source.Channel("127.0.0.1:" + std::to_string(port)));
  auto call = [&](Loop& loop) { return Verify(loop, *stub, "worker", 1'000); };
  EXPECT_FALSE(RunOn(loops.loop(0), call).ok());
  Server server(loops, "127.0.0.1:" + std::to_string(port));
  int64_t start = SystemClock::Get().MonotonicUs();
  while (!RunOn(loops.loop(0), call).ok()) std::this_thread::yield();
  EXPECT_LT(SystemClock::Get().MonotonicUs() - start, 900'000);
}

TEST(Rpc, AListOfAddressesSpreadsCallsAndSurvivesTheLossOfOne) {
  LoopPool loops(1);
  loops.Start();
  Server first(loops);
  std::optional<Server> second(std::in_place, loops);
  ChannelSource source;
  auto stub = AuthService::NewStub(source.Channel(first.target() + "," + second->target()));
  auto call = [&](Loop& loop) { return Verify(loop, *stub, "worker", 2'000); };
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(RunOn(loops.loop(0), call).ok());
  second.reset();
  int failed = 0;
  for (int i = 0; i < 20; ++i) failed += RunOn(loops.loop(0), call).ok() ? 0 : 1;
  EXPECT_LE(failed, 2);
}

TEST(Rpc, UnixSocketsCarryCalls) {
  LoopPool loops(1);
  loops.Start();
  std::string address =
      "unix:" + ::testing::TempDir() + "/rpc_" + std::to_string(getpid()) + ".sock";
  Server server(loops, address);
  ChannelSource source;
  auto stub = AuthService::NewStub(source.Channel(address));
  EXPECT_TRUE(RunOn(loops.loop(0), [&](Loop& loop) { return Verify(loop, *stub, "worker"); }).ok());
}

TEST(Rpc, InProcessWithoutAServerIsUnavailable) {
  LoopPool loops(1);
  loops.Start();
  ChannelSource source;
  auto stub = AuthService::NewStub(source.Channel("inproc:"));
  auto result =
      RunOn(loops.loop(0), [&](Loop& loop) { return Verify(loop, *stub, "worker", 500); });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().id, ErrorId::kServiceUnavailable);
}

}  // namespace
}  // namespace tollgate::rpc
