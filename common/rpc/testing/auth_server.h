// For tests: an auth service with canned behavior on a gRPC server, and calls to it.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/call.h"
#include "common/rpc/channel.h"
#include "common/rpc/push_hub.h"
#include "common/rpc/server.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"

namespace tollgate::rpc::testing {

using auth::v1::AuthService;
using auth::v1::VerifyKeyRequest;
using auth::v1::VerifyKeyResponse;
using auth::v1::WatchKeysRequest;
using auth::v1::WatchKeysResponse;
using Async = AuthService::StubInterface::async_interface;

// Each VerifyKey call selects its behavior by the key_digest of the request.
class FakeAuth : public AuthService::CallbackService {
 public:
  explicit FakeAuth(LoopPool& loops, int64_t max_stream_age_ms = kMaxConnectionAgeMs)
      : loops_(loops),
        hub(loops.loop(0), {.ping_ms = 30,
                            .make_ping = [] { return Message(-1); },
                            .max_age_ms = max_stream_age_ms}) {}
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
    if (what == "large") {
      response->mutable_key()->set_name(std::string(kMaxMessageBytes, 'x'));
      return Answer(context, Result<void>());
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
  ThreadPool workers_{2, 100, "test"};

 public:
  PushHub<WatchKeysResponse> hub;
};

// A running server with that service, and channels to it.
struct AuthServer {
  explicit AuthServer(LoopPool& loops, const std::string& address = "127.0.0.1:0",
                      int64_t max_stream_age_ms = kMaxConnectionAgeMs)
      : service(std::make_unique<FakeAuth>(loops, max_stream_age_ms)) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    EXPECT_NE(server, nullptr);
    channels.SetServers(server.get());
  }
  ~AuthServer() { server->Shutdown(std::chrono::system_clock::now()); }
  std::string target() const { return "127.0.0.1:" + std::to_string(port); }

  std::unique_ptr<FakeAuth> service;
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  ChannelSource channels;
};

inline Task<Result<VerifyKeyResponse>> Verify(Loop& loop, AuthService::Stub& stub, std::string what,
                                              int64_t timeout_ms = 60'000) {
  VerifyKeyRequest request;
  request.set_key_digest(what);
  return Unary(loop, stub.async(), &Async::VerifyKey, std::move(request), timeout_ms);
}

// Runs a test over the in-process transport and over TCP:
//   INSTANTIATE_TEST_SUITE_P(Transport, MyTest, kTransports, TransportName);
class RpcTest : public ::testing::TestWithParam<bool> {
 protected:
  RpcTest() {
    server_loops_.Start();
    loops_.Start();
    server_.emplace(server_loops_);
    stub_ = AuthService::NewStub(
        server_->channels.Channel(GetParam() ? server_->target() : std::string("inproc:"), "auth"));
  }
  Loop& loop() { return loops_.loop(0); }
  Result<VerifyKeyResponse> Call(const std::string& what, int64_t timeout_ms = 60'000) {
    return tollgate::testing::RunOn(
        loop(), [&](Loop& loop) { return Verify(loop, *stub_, what, timeout_ms); });
  }

  LoopPool server_loops_{1};
  LoopPool loops_{1};
  std::optional<AuthServer> server_;
  std::unique_ptr<AuthService::Stub> stub_;
};

inline const auto kTransports = ::testing::Values(false, true);
inline std::string TransportName(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Tcp" : "InProcess";
}

}  // namespace tollgate::rpc::testing
