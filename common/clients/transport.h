// How a client reaches its service: by a gRPC call, or by a direct call within the process.
#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "common/clients/direct.h"
#include "common/rpc/replica_call.h"
#include "common/rpc/streamed_method.h"

namespace tollgate {

template <typename Request, typename Response>
using Transport = std::function<Task<Result<Response>>(Request request, int64_t timeout_ms)>;

// Calls any of the replicas over gRPC: Over<Service>(loop, replicas, &Async::Method). A call whose
// replica is lost is sent to another one, so use it only for idempotent calls.
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

// As Over, but prefers this replica; null: any.
template <typename Request, typename Response>
using TransportTo = std::function<Task<Result<Response>>(std::shared_ptr<rpc::Replicas> replicas,
                                                         std::shared_ptr<rpc::Replica> first,
                                                         Request request, int64_t timeout_ms)>;

// As OverTo, but all calls of a loop to a replica share one stream: OverStreamTo<Service>(loop,
// &Async::Method, &Async::MethodCalls). Only for idempotent calls, as Over.
template <typename Service, typename Async, typename Request, typename Response, typename Call,
          typename Reply>
TransportTo<Request, Response> OverStreamTo(
    Loop& loop,
    void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                          std::function<void(grpc::Status)>),
    void (Async::*stream)(grpc::ClientContext*, grpc::ClientBidiReactor<Call, Reply>*)) {
  using Method = rpc::StreamedMethod<Service, Async, Request, Response, Call, Reply>;
  return [&loop, method = Method{{method}, stream}](std::shared_ptr<rpc::Replicas> replicas,
                                                    std::shared_ptr<rpc::Replica> first,
                                                    Request request, int64_t timeout_ms) {
    return rpc::CallAny(loop, std::move(replicas), method, std::move(request), timeout_ms,
                        rpc::Moves::kYes, std::move(first));
  };
}

// As OverStreamTo, but to any of these replicas: OverStream<Service>(loop, replicas,
// &Async::Method, &Async::MethodCalls).
template <typename Service, typename Async, typename Request, typename Response, typename Call,
          typename Reply>
Transport<Request, Response> OverStream(
    Loop& loop, std::shared_ptr<rpc::Replicas> replicas,
    void (Async::*method)(grpc::ClientContext*, const Request*, Response*,
                          std::function<void(grpc::Status)>),
    void (Async::*stream)(grpc::ClientContext*, grpc::ClientBidiReactor<Call, Reply>*)) {
  return [replicas = std::move(replicas), to = OverStreamTo<Service>(loop, method, stream)](
             Request request, int64_t timeout_ms) {
    return to(replicas, nullptr, std::move(request), timeout_ms);
  };
}

// Accessor of a request's list of items, such as &AuthorizeRequest::mutable_items.
template <typename Request, typename Item>
using ItemsOf = google::protobuf::RepeatedPtrField<Item>* (Request::*)();

// Builds one message from a batch of items.
template <typename Request, typename Item>
Request BatchRequest(ItemsOf<Request, Item> field, std::vector<Item> items) {
  Request request;
  (request.*field)()->Reserve(static_cast<int>(items.size()));
  for (Item& item : items) *(request.*field)()->Add() = std::move(item);
  return request;
}

// Moves the results out of the response to a batch.
template <typename Response, typename Reply>
Result<std::vector<Reply>> TakeResults(Result<Response> response) {
  if (!response.ok()) return Fail{std::move(response).error()};
  auto& results = *response->mutable_results();
  return std::vector<Reply>(std::make_move_iterator(results.begin()),
                            std::make_move_iterator(results.end()));
}

// Calls within the process. There is no timeout, since the service answers in bounded time.
template <typename Request, typename Response>
Transport<Request, Response> Over(Loop& loop, DirectCall<Request, Response> call) {
  return [&loop, call = std::move(call)](Request request, int64_t) {
    return CallDirect<Request, Response>(loop, call, std::move(request));
  };
}

// Sends one batch of items as one message within the process, for Batcher.
template <typename Reply, typename Request, typename Response, typename Item>
auto DirectBatch(DirectCall<Request, Response> call, ItemsOf<Request, Item> field) {
  return [call = std::move(call), field](std::vector<Item> items,
                                         std::function<void(Result<std::vector<Reply>>)> done) {
    call(BatchRequest<Request, Item>(field, std::move(items)),
         [done = std::move(done)](Result<Response> response) {
           done(TakeResults<Response, Reply>(std::move(response)));
         });
  };
}

}  // namespace tollgate
