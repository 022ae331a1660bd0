// Calls of auth's SessionService on dedicated threads, because they may take a while. Three kinds
// do not block each other: resolving a session (on each admin call), sign-ins, and calls that
// involve a sign-in provider.
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
  // Returns the channel to auth for one call. Called on the loop of that call.
  using ChannelOf = std::function<std::shared_ptr<grpc::Channel>(Loop& loop)>;
  explicit SessionClient(ChannelOf channel_of) : channel_of_(std::move(channel_of)) {}

  // Example: co_await client.Call(loop, &Stub::SignIn, request)
  using Stub = auth::v1::SessionService::Stub;
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response>
  Task<SessionAnswer<Response>> Call(Loop& loop, Method<Request, Response> method,
                                     Request request) {
    return CallOn(sign_ins_, kTimeout, loop, method, std::move(request));
  }
  Task<SessionAnswer<auth::v1::ResolveResponse>> Resolve(Loop& loop,
                                                         auth::v1::ResolveRequest request) {
    return CallOn(resolves_, kResolveTimeout, loop, &Stub::Resolve, std::move(request));
  }
  Task<SessionAnswer<auth::v1::DescribeSignInResponse>> DescribeSignIn(Loop& loop) {
    return CallOn(resolves_, kResolveTimeout, loop, &Stub::DescribeSignIn,
                  auth::v1::DescribeSignInRequest());
  }
  // For calls that wait for a sign-in provider.
  template <typename Request, typename Response>
  Task<SessionAnswer<Response>> CallProvider(Loop& loop, Method<Request, Response> method,
                                             Request request) {
    return CallOn(provider_, kTimeout, loop, method, std::move(request));
  }

 private:
  template <typename Request, typename Response>
  Task<SessionAnswer<Response>> CallOn(ThreadPool& pool, std::chrono::seconds timeout, Loop& loop,
                                       Method<Request, Response> method, Request request) {
    auto answer = co_await RunOnPool(
        pool, loop, [channel = channel_of_(loop), timeout, method, request = std::move(request)] {
          const auto stub = auth::v1::SessionService::NewStub(channel);
          SessionAnswer<Response> done;
          grpc::ClientContext context;
          context.set_deadline(std::chrono::system_clock::now() + timeout);
          done.status = (stub.get()->*method)(&context, request, &done.response);
          return done;
        });
    if (answer) co_return *std::move(answer);
    co_return SessionAnswer<Response>{
        {grpc::StatusCode::UNAVAILABLE, "too many calls at once; try again"}, {}};
  }

  // Longer than a call of a sign-in provider takes.
  static constexpr std::chrono::seconds kTimeout{25};
  static constexpr std::chrono::seconds kResolveTimeout{2};

  const ChannelOf channel_of_;
  // Destroyed first.
  ThreadPool resolves_{8, 256, "sessions"};
  ThreadPool sign_ins_{4, 64, "sign-ins"};
  ThreadPool provider_{4, 16, "sign-in-provider"};
};

}  // namespace tollgate::dashboard
