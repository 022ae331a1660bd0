// The router's half of InferenceService: takes Link and Generate calls, shows each request to a
// handler as a coroutine on a loop, and gathers the events of all requests of a link into one
// message per turn.
#pragma once

#include <functional>
#include <memory>

#include "common/error/error.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace grpc {
class Service;
}

namespace tollgate {

// Where a running request's events go. Lives on one loop.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Queues the event for this turn's message. Suspends while the receiver has no room (credit), so
  // a slow client holds back the engine. False: the receiver has gone or cancelled; send no more.
  virtual Task<bool> Send(inference::v1::Event event) = 0;
  // The receiver has gone or cancelled.
  virtual bool cancelled() const = 0;
  // Called once, on the loop, when that happens (at once if it already has). Empty callback unsets.
  virtual void OnCancel(std::function<void()> callback) = 0;
};

using GenerateHandler =
    std::function<Task<void>(inference::v1::GenerateRequest, std::shared_ptr<EventSink>)>;

// Runs on a loop.
using CountHandler = std::function<Task<Result<inference::v1::CountTokensResponse>>(
    inference::v1::CountTokensRequest)>;

class LinkServer {
 public:
  // Each new link (and each other call) is given the pool's next loop. Without a count handler
  // CountTokens is unimplemented.
  static std::unique_ptr<LinkServer> Make(LoopPool& loops, GenerateHandler handler,
                                          CountHandler count = {});
  virtual ~LinkServer() = default;
  // The gRPC service to register.
  virtual grpc::Service* service() = 0;
  // Runs a request on the loop that asks, without gRPC: for a gateway in the same process.
  virtual std::unique_ptr<class Generation> StartDirect(Loop& loop,
                                                        inference::v1::GenerateRequest request) = 0;
  // Refuses new requests with kServiceUnavailable; running ones go on.
  virtual void Drain() = 0;
  // Requests that are running now.
  virtual int running() const = 0;
};

}  // namespace tollgate
