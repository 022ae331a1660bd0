// A unary gRPC call as a coroutine. The callback of gRPC only posts to the calling loop.
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

// State of a call. The calling coroutine and gRPC's callback share it, since either may end first.
template <typename Request, typename Response>
struct PendingCall {
  explicit PendingCall(Loop& loop) : outside(std::make_unique<OutsideWork>(loop)) {}
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
  Waiter* waiter = nullptr;              // loop's thread only; null once the coroutine is destroyed
  std::unique_ptr<OutsideWork> outside;  // until gRPC has posted the response
};

// Cancels a running call, which then ends with kServiceUnavailable, but never within Cancel. Used
// on the loop's thread.
class CancelSlot {
 public:
  void Cancel() {
    if (cancel_) cancel_();
  }
  void Set(std::function<void()> cancel) { cancel_ = std::move(cancel); }

 private:
  std::function<void()> cancel_;  // empty: no call is running
};

// Calls the method on the loop's thread and returns its response or error. Example:
//   co_await Unary(loop, stub->async(), &AuthService::StubInterface::async_interface::VerifyKey,
//                  request, 2000)
// Destroying the coroutine cancels the call. cancel: another way to cancel it; may be null.
template <typename Async, typename Request, typename Response>
Task<Result<Response>> Unary(Loop& loop, std::type_identity_t<Async>* async,
                             void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                                                   std::function<void(grpc::Status)>),
                             std::type_identity_t<Request> request, int64_t timeout_ms,
                             CancelSlot* cancel = nullptr) {
  using Call = PendingCall<Request, Response>;
  auto call = std::make_shared<Call>(loop);
  Waiter waiter(loop);
  struct Guard {
    Call& call;
    CancelSlot* cancel;
    bool done = false;
    ~Guard() {
      call.waiter = nullptr;
      if (cancel != nullptr) cancel->Set(nullptr);
      if (!done) call.context.TryCancel();
    }
  } guard{*call, cancel};
  if (cancel != nullptr) cancel->Set([context = &call->context] { context->TryCancel(); });
  call->waiter = &waiter;
  call->request = std::move(request);
  call->context.set_deadline(std::chrono::system_clock::now() +
                             std::chrono::milliseconds(std::max<int64_t>(timeout_ms, 1)));
  (async->*method)(&call->context, &call->request, &call->response,
                   [call](grpc::Status status) mutable {
                     call->status = std::move(status);
                     // Moves the whole call to the loop: its context holds the channel, and
                     // destroying a channel on a thread of gRPC crashes the process
                     // (docs/design/toolchain.md 2).
                     std::unique_ptr<OutsideWork> outside = std::move(call->outside);
                     outside->loop().Post([call = std::move(call)] {
                       if (call->waiter != nullptr) call->waiter->ResumeNow(true);
                     });
                   });
  const bool completed = co_await waiter.Suspend();
  guard.done = completed;
  if (!completed) co_return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  if (!call->status.ok()) co_return Fail{FromStatus(call->status)};
  co_return std::move(call->response);
}

}  // namespace tollgate::rpc
