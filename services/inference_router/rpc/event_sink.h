// The interface between transports and handlers in the router: a handler writes the events of one
// generation to a sink, however the request arrived (Link, Generate, or a direct call).
#pragma once

#include <functional>
#include <memory>

#include "common/runtime/task.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Receives the events of one running request. Lives on one loop.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // Queues the event for the message of this turn. Suspends while the receiver has granted no
  // window, so that a slow client slows the engine down. Returns false if the receiver cancelled or
  // disconnected; send no more then.
  virtual Task<bool> Send(inference::v1::Event event) = 0;
  // Whether the receiver cancelled or disconnected.
  virtual bool cancelled() const = 0;
  // Whether the gateway disconnected, as opposed to its caller. The caller then has at most what
  // was sent before.
  virtual bool receiver_lost() const { return false; }
  // Sets the callback for a cancellation. It is called once, on the loop; immediately if already
  // cancelled. An empty callback removes it.
  virtual void OnCancel(std::function<void()> callback) = 0;
};

// Runs on a loop, from the request to its End event.
using GenerateHandler =
    std::function<Task<void>(inference::v1::GenerateRequest, std::shared_ptr<EventSink>)>;

}  // namespace tollgate::inference_router
