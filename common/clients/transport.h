// How a client reaches its service: by a gRPC call, or by a direct call within the process.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/clients/direct.h"
#include "common/rpc/replica_call.h"

namespace tollgate {

template <typename Request, typename Response>
using Transport = std::function<Task<Result<Response>>(Request request, int64_t timeout_ms)>;

// Over gRPC, to any of the replicas: Over<Service>(loop, replicas, &Async::Method). What runs when
// a replica is lost is sent to another one: only for calls that are idempotent.
template <typename Service, typename Async, typename Request, typename Response>
Transport<Request, Response> Over(Loop& loop, std::shared_ptr<rpc::Replicas> replicas,
                                  void (Async::*method)(grpc::ClientContext*, const Request*,
                                                        Response*,
                                                        std::function<void(grpc::Status)>)) {
  return [&loop, replicas = std::move(replicas), method](Request request, int64_t timeout_ms) {
    return rpc::CallAny<Service>(loop, replicas, method, std::move(request), timeout_ms,
                                 rpc::Moves::kYes);
  };
}

// Within the process; has no timeout, since the service answers in bounded time.
template <typename Request, typename Response>
Transport<Request, Response> Over(Loop& loop, DirectCall<Request, Response> call) {
  return [&loop, call = std::move(call)](Request request, int64_t) {
    return CallDirect<Request, Response>(loop, call, std::move(request));
  };
}

}  // namespace tollgate
