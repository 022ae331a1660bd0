// A call to any replica of a service that is in use.
#pragma once

#include <memory>
#include <utility>

#include "common/base/clock.h"
#include "common/rpc/call.h"
#include "common/rpc/replicas.h"

namespace tollgate::rpc {

// Whether a call that may have reached one replica may be sent to another one.
enum class Moves {
  kNo,   // it stays with its replica, however long it takes
  kYes,  // it changes nothing, or is idempotent by an id
};

// Maximum of replicas that one call is sent to.
inline constexpr int kMaxReplicasOfACall = 3;

// A unary method: Ask(loop, replica, request, timeout_ms, cancel) calls it on one replica.
template <typename Service, typename Async, typename Request, typename Response>
struct UnaryMethod {
  using Pointer = void (Async::*)(grpc::ClientContext*, const Request*, Response*,
                                  std::function<void(grpc::Status)>);
  Pointer method;

  Task<Result<Response>> Ask(Loop& loop, std::shared_ptr<Replica> replica, Request request,
                             int64_t timeout_ms, CancelSlot* cancel) const {
    const auto stub = replica->template Stub<Service>();
    co_return co_await Unary(loop, stub->async(), method, std::move(request), timeout_ms, cancel);
  }
};

// Calls the method: CallAny(loop, replicas, method, request, 2000, Moves::kYes). first: the replica
// to try first while it is in use; null: any. kServiceUnavailable: no replica answered in time; the
// call may or may not have been applied.
template <typename Method, typename Request>
auto CallAny(Loop& loop, std::shared_ptr<Replicas> replicas, Method method, Request request,
             int64_t timeout_ms, Moves moves, std::shared_ptr<Replica> first = nullptr)
    -> decltype(method.Ask(loop, nullptr, std::move(request), timeout_ms, nullptr)) {
  const int64_t deadline_us = SystemClock::Get().MonotonicUs() + timeout_ms * 1000;
  replicas->CountCall();
  std::shared_ptr<Replica> replica =
      first && replicas->InUse(*first) ? std::move(first) : replicas->Pick();
  for (int sent = 1;; ++sent) {
    const int64_t left_ms = (deadline_us - SystemClock::Get().MonotonicUs()) / 1000;
    const bool last = moves == Moves::kNo || sent == kMaxReplicasOfACall || replicas->size() == 1;
    CancelSlot slot;
    std::function<void()> abandon;
    if (moves == Moves::kYes) abandon = [&slot] { slot.Cancel(); };
    Replica::Use use(replica, std::move(abandon), true);
    Request copy;
    if (last) {
      copy = std::move(request);
    } else {
      copy = request;
    }
    auto result = co_await method.Ask(loop, replica, std::move(copy), left_ms, &slot);
    const bool answered = result.ok() || result.error().id != ErrorId::kServiceUnavailable;
    if (!use.abandoned()) replica->CallEnded(answered);
    if (answered || last) co_return result;
    if (SystemClock::Get().MonotonicUs() >= deadline_us) co_return result;
    std::shared_ptr<Replica> other = replicas->Pick(replica.get());
    if (other == replica || !replicas->TakeRetry()) co_return result;
    replica = std::move(other);
  }
}

// Example:
//   co_await CallAny<AuthService>(loop, replicas, &Async::VerifyKey, request, 2000, Moves::kYes)
template <typename Service, typename Async, typename Request, typename Response>
Task<Result<Response>> CallAny(Loop& loop, std::shared_ptr<Replicas> replicas,
                               void (Async::*method)(grpc::ClientContext*, const Request*,
                                                     Response*, std::function<void(grpc::Status)>),
                               std::type_identity_t<Request> request, int64_t timeout_ms,
                               Moves moves) {
  return CallAny(loop, std::move(replicas), UnaryMethod<Service, Async, Request, Response>{method},
                 std::move(request), timeout_ms, moves);
}

}  // namespace tollgate::rpc
