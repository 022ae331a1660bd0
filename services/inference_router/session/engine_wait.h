// Selects the first engine of a session, for which it may have to wait (balancer/wait_queue.h).
#pragma once

#include "common/runtime/notify.h"
#include "services/inference_router/session/session_context.h"

namespace tollgate::inference_router {

class EngineWait {
 public:
  // The context outlives it.
  explicit EngineWait(SessionContext& context) : context_(context) {}
  EngineWait(const EngineWait&) = delete;
  EngineWait& operator=(const EngineWait&) = delete;

  // As SelectEngine, after a wait of at most SessionSettings::queue_ms. Once.
  Task<Selection> First();
  // Nobody waits for the answer any more, or the session has to end: First returns without an
  // engine.
  void Abort();

 private:
  Task<WaitQueue::Answer> Wait(WaitQueue& queue, WaitQueue::Request& request, Event& woken);

  SessionContext& context_;
  bool aborted_ = false;
  Event* woken_ = nullptr;  // while it waits
};

}  // namespace tollgate::inference_router
