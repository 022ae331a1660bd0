// Calls of auth's SessionService, on threads of their own: they are rare and may take a while.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "common/runtime/thread_pool.h"
#include "tollgate/auth/v1/session.grpc.pb.h"

namespace tollgate::dashboard {

template <typename Response>
struct SessionAnswer {
  grpc::Status status;
  Response response;
};

// Thread-safe.
class SessionClient {
 public:
  // A channel to auth for one call, asked for on the call's loop.
  using ChannelOf = std::function<std::shared_ptr<grpc::Channel>(Loop& loop)>;
  explicit SessionClient(ChannelOf channel_of)
      : channel_of_(std::move(channel_of)), pool_(kThreads, kMaxQueued, "sessions") {}

  // Example: co_await client.Call(loop, &Stub::SignIn, request)
  using Stub = auth::v1::SessionService::Stub;
  template <typename Request, typename Response>
  Task<SessionAnswer<Response>> Call(Loop& loop,
                                     grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                                     Request request) {
    auto answer = co_await RunOnPool(
        pool_, loop, [channel = channel_of_(loop), method, request = std::move(request)] {
          const auto stub = auth::v1::SessionService::NewStub(channel);
          SessionAnswer<Response> done;
          grpc::ClientContext context;
          context.set_deadline(std::chrono::system_clock::now() + kTimeout);
          done.status = (stub.get()->*method)(&context, request, &done.response);
          return done;
        });
    if (answer) co_return *std::move(answer);
    co_return SessionAnswer<Response>{
        {grpc::StatusCode::UNAVAILABLE, "too many calls at once; try again"}, {}};
  }

 private:
  static constexpr int kThreads = 8;
  static constexpr size_t kMaxQueued = 256;
  // Longer than a call of a sign-in provider.
  static constexpr std::chrono::seconds kTimeout{25};

  const ChannelOf channel_of_;
  ThreadPool pool_;  // destroyed first
};

}  // namespace tollgate::dashboard
