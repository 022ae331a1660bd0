// How a client reaches its service: by a gRPC call, or by a direct call within the process.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/clients/direct.h"
#include "common/rpc/call.h"

namespace tollgate {

template <typename Request, typename Response>
using Transport = std::function<Task<Result<Response>>(Request request, int64_t timeout_ms)>;

// Over gRPC: Over(loop, stub, &Service::StubInterface::async_interface::Method).
template <typename Stub, typename Async, typename Request, typename Response>
Transport<Request, Response> Over(Loop& loop, std::shared_ptr<Stub> stub,
                                  void (Async::*method)(grpc::ClientContext*, const Request*,
                                                        Response*,
                                                        std::function<void(grpc::Status)>)) {
  return [&loop, stub = std::move(stub), method](Request request, int64_t timeout_ms) {
    return rpc::Unary(loop, stub->async(), method, std::move(request), timeout_ms);
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
