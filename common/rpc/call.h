// A unary gRPC call as a coroutine. The callback of gRPC only posts to the calling loop.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "common/base/try.h"
#include "common/error/error.h"
#include "common/runtime/notify.h"

namespace tollgate::rpc {

// State of a call. The calling coroutine and gRPC's callback share it, since either may end first.
struct PendingCall {
  explicit PendingCall(Loop& loop) : outside(std::make_unique<OutsideWork>(loop)) {}
  grpc::ClientContext context;
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

// The part of Unary that does not depend on the method; lives in its coroutine.
class UnaryWait {
 public:
  UnaryWait(Loop& loop, std::shared_ptr<PendingCall> call, int64_t timeout_ms, CancelSlot* cancel);
  // Cancels the call if it has not ended.
  ~UnaryWait();
  UnaryWait(const UnaryWait&) = delete;
  UnaryWait& operator=(const UnaryWait&) = delete;

  // The callback for gRPC.
  std::function<void(grpc::Status)> OnDone() const;
  // Until the call has ended, or the coroutine is cancelled.
  Task<bool> Suspend() { return waiter_.Suspend(); }
  // suspended: what Suspend returned.
  Result<void> End(bool suspended);

 private:
  const std::shared_ptr<PendingCall> call_;
  CancelSlot* const cancel_;
  Waiter waiter_;
  bool done_ = false;
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
  struct Call : PendingCall {
    using PendingCall::PendingCall;
    Request request;
    Response response;
  };
  const auto call = std::make_shared<Call>(loop);
  call->request = std::move(request);
  UnaryWait wait(loop, call, timeout_ms, cancel);
  (async->*method)(&call->context, &call->request, &call->response, wait.OnDone());
  const bool suspended = co_await wait.Suspend();
  CO_TRY(wait.End(suspended));
  co_return std::move(call->response);
}

}  // namespace tollgate::rpc
