// Calls one method of a service: at the replicas that are in use, or within the process.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "common/rpc/call.h"
#include "common/rpc/call_stream.h"
#include "common/rpc/direct_call.h"
#include "common/rpc/method.h"
#include "common/rpc/replicas.h"

namespace tollgate::rpc {

// Maximum of replicas that one call is sent to.
inline constexpr int kMaxReplicasOfACall = 3;

// The attempts of one call, each at another replica. The first one begins with the object.
class Attempts {
 public:
  // first: the replica to try first while it is in use; null: any.
  Attempts(std::shared_ptr<Replicas> replicas, int64_t timeout_ms, Moves moves,
           const std::shared_ptr<Replica>& first);

  const std::shared_ptr<Replica>& replica() const { return use_->replica(); }
  int64_t left_ms() const;
  // Whether no other attempt can follow, so that this one may consume the request.
  bool last() const { return last_; }
  CancelSlot* cancel() { return &cancel_; }
  // Ends the attempt and reports it. Returns true if the next one has begun, false if the call ends
  // with this error. error: null if the call succeeded.
  bool MoveOn(const Error* error);

 private:
  void Begin(std::shared_ptr<Replica> replica);

  const std::shared_ptr<Replicas> replicas_;
  const int64_t deadline_us_;
  const Moves moves_;
  int sent_ = 0;
  bool last_ = false;
  CancelSlot cancel_;
  std::optional<Replica::Use> use_;
};

// Cheap to copy.
template <typename Method>
class ReplicaCaller {
 public:
  using Request = typename Method::Request;
  using Response = typename Method::Response;
  using Direct = DirectCall<Request, Response>;

  // direct: used instead of the replicas, if set (only with kMayBeDirect). Such calls have no
  // timeout, since a service of the process answers in bounded time.
  ReplicaCaller(Loop& loop, std::shared_ptr<Replicas> replicas, Direct direct = {})
      : loop_(loop), replicas_(std::move(replicas)), direct_(std::move(direct)) {}

  // kServiceUnavailable: no replica answered in time; the call may or may not have been applied.
  Task<Result<Response>> Call(Request request, int64_t timeout_ms = Method::kTimeoutMs,
                              std::shared_ptr<Replica> first = nullptr,
                              Moves moves = Method::kMoves) const {
    if constexpr (Method::kMayBeDirect) {
      if (direct_) return CallDirect<Request, Response>(loop_, direct_, std::move(request));
    }
    return CallReplicas(loop_, replicas_, std::move(request), timeout_ms, std::move(first), moves);
  }
  // Null: calls go to the replicas.
  const Direct* direct() const { return direct_ ? &direct_ : nullptr; }

 private:
  static Task<Result<Response>> CallReplicas(Loop& loop, std::shared_ptr<Replicas> replicas,
                                             Request request, int64_t timeout_ms,
                                             std::shared_ptr<Replica> first, Moves moves) {
    if (!replicas) co_return Unavailable("the process is stopping");
    Attempts attempts(std::move(replicas), timeout_ms, moves, first);
    for (;;) {
      const int64_t left_ms = attempts.left_ms();
      Result<Response> result = co_await Ask(
          loop, attempts.replica(), attempts.last() ? std::move(request) : Request(request),
          left_ms, attempts.cancel());
      if (!attempts.MoveOn(result.ok() ? nullptr : &result.error())) co_return result;
    }
  }

  static Task<Result<Response>> Ask(Loop& loop, std::shared_ptr<Replica> replica, Request request,
                                    int64_t timeout_ms, CancelSlot* cancel) {
    if constexpr (requires { Method::kStream; }) {
      return AskOnStream(loop, std::move(replica), std::move(request), timeout_ms, cancel);
    } else {
      return AskUnary(loop, *replica, std::move(request), timeout_ms, cancel);
    }
  }
  // The replica keeps the stub.
  static Task<Result<Response>> AskUnary(Loop& loop, Replica& replica, Request request,
                                         int64_t timeout_ms, CancelSlot* cancel) {
    return Unary(loop, replica.template Stub<typename Method::Service>()->async(), Method::kUnary,
                 std::move(request), timeout_ms, cancel);
  }
  static Task<Result<Response>> AskOnStream(Loop& loop, std::shared_ptr<Replica> replica,
                                            Request request, int64_t timeout_ms,
                                            CancelSlot* cancel) {
    using Calls = CallStream<typename Method::StreamCall, typename Method::StreamReply>;
    auto calls = replica->template Companion<Calls>([&] {
      return std::make_shared<Calls>(
          loop, [stub = replica->template Stub<typename Method::Service>()](
                    grpc::ClientContext* context, typename Calls::Reactor* reactor) {
            (stub->async()->*Method::kStream)(context, reactor);
          });
    });
    if (!calls->Usable()) {
      co_return co_await AskUnary(loop, *replica, std::move(request), timeout_ms, cancel);
    }
    std::unique_ptr<Request> copy;
    if (!calls->proven()) copy = std::make_unique<Request>(request);
    auto answer = co_await Calls::Ask(calls, std::move(request), timeout_ms, cancel);
    if (answer.unknown_method && copy) {
      co_return co_await AskUnary(loop, *replica, std::move(*copy), timeout_ms, cancel);
    }
    co_return std::move(answer.result);
  }

  Loop& loop_;
  std::shared_ptr<Replicas> replicas_;
  Direct direct_;
};

}  // namespace tollgate::rpc
