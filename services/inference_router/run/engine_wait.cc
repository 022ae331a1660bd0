#include "services/inference_router/run/engine_wait.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace tollgate::inference_router {
namespace {

// Wakes a request from another thread, even if it has ended meanwhile.
struct Wake {
  explicit Wake(Loop& loop) : outside(loop), event(loop) {}
  OutsideWork outside;
  Event event;
};

}  // namespace

Task<Selection> EngineWait::First() {
  RunHost& host = context_.host;
  const auto& request = context_.request;
  const Route& route = *context_.route;
  if (route.queue->waiting() == 0) {  // the common case, without allocations
    Selection selection =
        SelectEngine(route.engines, {}, host.clock.MonotonicUs(), ++host.rotation, context_.need);
    if (selection.engine != nullptr || selection.no_engine == NoEngine::kDown) {
      co_return selection;
    }
  }
  const auto wake = std::make_shared<Wake>(host.loop);
  WaitQueue::Request place;
  place.workspace = request.workspace_id();
  place.priority = route.priority;
  place.cost = context_.need.work.total();
  place.bytes = static_cast<int64_t>(request.members_json().size());
  place.engines = &route.engines;
  place.need = context_.need;
  place.wake = [wake] { wake->outside.loop().Post([wake] { wake->event.Set(); }); };
  // Does not wait if another model may answer at once, or if all engines pause for longer than the
  // wait.
  const int64_t now_us = host.clock.MonotonicUs();
  const bool may_wait = host.settings.queue_ms > 0 && !request.keep_hold() &&
                        PauseMs(route.engines, now_us) < host.settings.queue_ms;
  WaitQueue::Answer answer = route.queue->Enter(place, may_wait, now_us, ++host.rotation);
  if (answer.entered == WaitQueue::Entered::kFull && may_wait) host.metrics.queue_full.Increment();
  if (answer.entered == WaitQueue::Entered::kWaiting) {
    answer = co_await Wait(*route.queue, place, wake->event);
    context_.waited_us = host.clock.MonotonicUs() - now_us;
  }
  co_return std::move(answer.selection);
}

Task<WaitQueue::Answer> EngineWait::Wait(WaitQueue& queue, WaitQueue::Request& request,
                                         Event& woken) {
  // Engines also recover or are added, which grants no place by itself.
  constexpr int64_t kLookMs = 250;
  RunHost& host = context_.host;
  RouterMetrics& metrics = host.metrics;
  const int64_t begun_us = host.clock.MonotonicUs();
  const int64_t until_us = begun_us + host.settings.queue_ms * 1000;
  // Cleans up even if the coroutine is destroyed during the wait.
  struct Guard {
    RunHost& host;
    WaitQueue& queue;
    WaitQueue::Request& request;
    Event*& woken;
    ~Guard() {
      woken = nullptr;
      host.metrics.queue_waiting.Decrement();
      const int64_t now_us = host.clock.MonotonicUs();
      const auto answer = queue.Withdraw(request, now_us);
      if (answer.selection.engine == nullptr) return;
      answer.selection.engine->Leave(answer.selection.work);
      queue.Grant(now_us);
    }
  } guard{host, queue, request, woken_};
  metrics.queue_waiting.Increment();
  woken_ = &woken;
  for (;;) {
    const int64_t now_us = host.clock.MonotonicUs();
    const int64_t left_ms = (until_us - now_us) / 1000;
    if (aborted_ || woken.is_set() || left_ms <= 0) break;
    if (!co_await woken.WaitFor(std::min(left_ms, kLookMs))) queue.Grant(host.clock.MonotonicUs());
  }
  if (aborted_) {
    metrics.queue_left.Increment();
    co_return WaitQueue::Answer{};
  }
  const int64_t now_us = host.clock.MonotonicUs();
  WaitQueue::Answer answer = queue.Withdraw(request, now_us);
  switch (answer.entered) {
    case WaitQueue::Entered::kGranted:
      metrics.queue_granted.Increment();
      metrics.queue_seconds.Observe(static_cast<double>(now_us - begun_us) / 1e6);
      break;
    case WaitQueue::Entered::kFull:
      metrics.queue_full.Increment();
      break;
    default:
      metrics.queue_timed_out.Increment();
  }
  co_return answer;
}

void EngineWait::Abort() {
  aborted_ = true;
  if (woken_ != nullptr) woken_->Set();
}

}  // namespace tollgate::inference_router
