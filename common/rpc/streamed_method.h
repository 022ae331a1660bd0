// A method with a unary form and a form with many calls on one stream (call_stream.h), for CallAny.
#pragma once

#include <memory>
#include <utility>

#include "common/rpc/call_stream.h"
#include "common/rpc/replica_call.h"

namespace tollgate::rpc {

// A replica of an earlier version, which does not know the stream, gets unary calls.
template <typename Service, typename Async, typename Request, typename Response, typename Call,
          typename Reply>
struct StreamedMethod {
  using Calls = CallStream<Call, Reply>;
  UnaryMethod<Service, Async, Request, Response> unary;
  void (Async::*stream)(grpc::ClientContext*, grpc::ClientBidiReactor<Call, Reply>*);

  Task<Result<Response>> Ask(Loop& loop, std::shared_ptr<Replica> replica, Request request,
                             int64_t timeout_ms, CancelSlot* cancel) const {
    auto calls = replica->template Companion<Calls>([&] {
      return std::make_shared<Calls>(
          loop, [stub = replica->template Stub<Service>(), stream = stream](
                    grpc::ClientContext* context, grpc::ClientBidiReactor<Call, Reply>* reactor) {
            (stub->async()->*stream)(context, reactor);
          });
    });
    if (!calls->Usable()) {
      co_return co_await unary.Ask(loop, std::move(replica), std::move(request), timeout_ms,
                                   cancel);
    }
    std::unique_ptr<Request> copy;
    if (!calls->proven()) copy = std::make_unique<Request>(request);
    auto answer = co_await Calls::Ask(calls, std::move(request), timeout_ms, cancel);
    if (answer.unknown_method && copy) {
      co_return co_await unary.Ask(loop, std::move(replica), std::move(*copy), timeout_ms, cancel);
    }
    co_return std::move(answer.result);
  }
};

}  // namespace tollgate::rpc
