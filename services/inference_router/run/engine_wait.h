// Selects the first engine of a request, after waiting for a place if necessary
// (balancer/wait_queue.h).
#pragma once

#include "common/runtime/notify.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

class EngineWait {
 public:
  // The context must outlive this object.
  explicit EngineWait(RunContext& context) : context_(context) {}
  EngineWait(const EngineWait&) = delete;
  EngineWait& operator=(const EngineWait&) = delete;

  // Calls SelectEngine, waiting at most RunSettings::queue_ms. Call once.
  Task<Selection> First();
  // Call when nobody waits for the answer, or the request has to end: First returns without an
  // engine.
  void Abort();

 private:
  Task<WaitQueue::Answer> Wait(WaitQueue& queue, WaitQueue::Request& request, Event& woken);

  RunContext& context_;
  bool aborted_ = false;
  Event* woken_ = nullptr;  // set while waiting
};

}  // namespace tollgate::inference_router
