// One unary call as a coroutine. gRPC's callback only posts to the calling loop.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "common/error/error.h"
#include "common/rpc/error_status.h"
#include "common/runtime/notify.h"

namespace tollgate::rpc {

// What a call needs while gRPC works on it; shared by the caller's coroutine and gRPC's callback,
// because either may be gone first.
template <typename Request, typename Response>
struct PendingCall {
  explicit PendingCall(Loop& loop) : outside(std::make_unique<OutsideWork>(loop)) {}
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
  Waiter* waiter = nullptr;              // loop's thread only; null once the coroutine is gone
  std::unique_ptr<OutsideWork> outside;  // until gRPC has posted the answer
};

// On the loop's thread. The method's type picks the right overload by itself:
//   co_await Unary(loop, stub->async(), &AuthService::StubInterface::async_interface::VerifyKey,
//                  request, 2000)
// Destroying the coroutine cancels the call.
template <typename Async, typename Request, typename Response>
Task<Result<Response>> Unary(Loop& loop, std::type_identity_t<Async>* async,
                             void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                   std::function<void(grpc::Status)>),
                             std::type_identity_t<Request> request, int64_t timeout_ms) {
  using Call = PendingCall<Request, Response>;
  auto call = std::make_shared<Call>(loop);
  Waiter waiter(loop);
  struct Guard {
    Call& call;
    bool done = false;
    ~Guard() {
      call.waiter = nullptr;
      if (!done) call.context.TryCancel();
    }
  } guard{*call};
  call->waiter = &waiter;
  call->request = std::move(request);
  call->context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::milliseconds(std::max<int64_t>(timeout_ms, 1)));
  (async->*method)(&call->context, &call->request, &call->response,
                   [call](grpc::Status status) mutable {
                     call->status = std::move(status);
                     // This thread keeps nothing of the call: its context holds the channel, whose
                     // end on a thread of gRPC's would be the end of the process (pitfalls.md).
                     std::unique_ptr<OutsideWork> outside = std::move(call->outside);
                     outside->loop().Post([call = std::move(call)] {
                       if (call->waiter != nullptr) call->waiter->ResumeNow(true);
                     });
                   });
  bool answered = co_await waiter.Suspend();
  guard.done = answered;
  if (!answered) co_return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  if (!call->status.ok()) co_return Fail{FromStatus(call->status)};
  co_return std::move(call->response);
}

}  // namespace tollgate::rpc
