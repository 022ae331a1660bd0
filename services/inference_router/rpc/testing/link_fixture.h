// A router's end of the token stream at its own port, a client for it, and the loops of both.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clients/link_client.h"
#include "common/rpc/error_detail.h"
#include "common/rpc/link_protocol.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"
#include "services/inference_router/rpc/link_server.h"
#include "tollgate/inference/v1/inference.grpc.pb.h"

namespace tollgate::inference_router::testing {

using inference::v1::Event;
using inference::v1::GenerateRequest;
using ::tollgate::testing::RunOn;

inline Event TextEvent(std::string text) {
  Event event;
  event.mutable_delta()->set_content_json(std::move(text));
  return event;
}

inline Event EndEvent() {
  Event event;
  event.mutable_end();
  return event;
}

// Sends max_tokens numbered deltas, then the end.
inline Task<void> Count(GenerateRequest request, std::shared_ptr<EventSink> sink) {
  for (int64_t i = 0; i < request.max_tokens(); ++i) {
    bool going = co_await sink->Send(TextEvent(request.model() + ":" + std::to_string(i)));
    if (!going) co_return;
  }
  co_await sink->Send(EndEvent());
}

inline Task<Result<inference::v1::CountTokensResponse>> CountLetters(
    inference::v1::CountTokensRequest request) {
  if (request.members_json().empty()) co_return Unavailable("nothing to count");
  inference::v1::CountTokensResponse response;
  response.set_counted(true);
  response.set_prompt_tokens(static_cast<int64_t>(request.members_json().size()));
  co_return response;
}

class Router {
 public:
  Router(LoopPool& loops, GenerateHandler handler, int port = 0,
         BodyLimits limits = {.max_body_bytes = kDefaultRouterBodyBytes},
         int64_t max_link_age_ms = rpc::kMaxConnectionAgeMs)
      : link_(LinkServer::Make(loops, std::move(handler), CountLetters, limits, max_link_age_ms)) {
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
  bool sent = false;
};

inline Task<Received> Receive(std::unique_ptr<Generation> generation) {
  Received received;
  while (true) {
    auto events = co_await generation->Next();
    received.sent = generation->sent();
    if (!events) {
      received.error = events.error();
      co_return received;
    }
    for (const Event& event : *events) {
      if (event.has_delta()) received.texts.push_back(event.delta().content_json());
      if (event.has_end()) {
        received.ended = true;
        if (event.end().has_error()) received.error = rpc::FromDetail(event.end().error());
        co_return received;
      }
    }
  }
}

inline GenerateRequest Request(std::string model, int64_t tokens) {
  GenerateRequest request;
  request.set_model(std::move(model));
  request.set_max_tokens(tokens);
  return request;
}

inline GenerateRequest BigRequest(size_t body_bytes, std::string model = "m") {
  GenerateRequest request = Request(std::move(model), 1);
  request.set_members_json(std::string(body_bytes, 'x'));
  return request;
}

inline constexpr size_t kMiB = 1024 * 1024;

// A router and a client with separate loops. The client is destroyed on its loop.
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
  void StartRouter(GenerateHandler handler,
                   BodyLimits limits = {.max_body_bytes = kDefaultRouterBodyBytes},
                   bool await_link = true) {
    router_ = std::make_unique<Router>(router_loops_, std::move(handler), 0, limits);
    Connect(GetParam() ? router_->Tcp() : router_->InProcess());
    if (await_link) AwaitLink();
  }
  // A request waits only one second for a link, which may be too short on a busy machine.
  void AwaitLink() {
    inference::v1::CountTokensRequest request;
    request.set_members_json("x");
    for (bool connected = false; !connected;) {
      connected = RunOn(loop(), [&](Loop&) -> Task<bool> {
        co_return (co_await client_->CountTokens(request)).ok();
      });
    }
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
  Received Ask(std::string model, int64_t tokens) { return Send(Request(model, tokens)); }
  Received Send(GenerateRequest request) {
    return RunOn(loop(), [&](Loop&) -> Task<Received> {
      auto generation = client_->Start(std::move(request));
      co_return co_await Receive(std::move(generation));
    });
  }

  LoopPool router_loops_{2};
  LoopPool gateway_loops_{1};
  std::unique_ptr<Router> router_;
  std::unique_ptr<InferenceClient> client_;
};

}  // namespace tollgate::inference_router::testing
