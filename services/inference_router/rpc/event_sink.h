// What serves a request in the router: a handler that writes the events of one generation to a
// sink, however the request arrived (Link, Generate, or a direct call).
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
  // window, so that a slow client slows the engine down. False: the receiver cancelled or
  // disconnected; send no more.
  virtual Task<bool> Send(inference::v1::Event event) = 0;
  // The receiver cancelled or disconnected.
  virtual bool cancelled() const = 0;
  // It was the gateway that disconnected, not its caller, who has what was sent before at most.
  virtual bool receiver_lost() const { return false; }
  // Sets the callback for a cancellation. It is called once, on the loop; at once if already
  // cancelled. An empty callback unsets it.
  virtual void OnCancel(std::function<void()> callback) = 0;
};

// Runs on a loop, from the request to its End event.
using GenerateHandler =
    std::function<Task<void>(inference::v1::GenerateRequest, std::shared_ptr<EventSink>)>;

}  // namespace tollgate::inference_router
