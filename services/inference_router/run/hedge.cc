#include "services/inference_router/run/hedge.h"

#include <utility>

namespace tollgate::inference_router {

bool Hedge::Wanted(const RunContext& context, const EngineRun& first) {
  return context.host.settings.hedge_after_ms > 0 && first.streams() &&
         context.request.kind() != inference::v1::REQUEST_KIND_EMBEDDING &&
         context.route->engines.size() > 1;
}

Hedge::Hedge(RunContext& context, EngineRun& first)
    : context_(context), first_(first), ended_(context.host.loop) {
  first_.OnAnswer([this] { Keep(first_); });
}

Hedge::~Hedge() {
  if (timer_ != 0) context_.host.loop.CancelTimer(timer_);
}

Task<RunOutcome> Hedge::Run() {
  Loop& loop = context_.host.loop;
  timer_ = loop.RunAfter(context_.host.settings.hedge_after_ms, [this] {
    timer_ = 0;
    StartSecond();
  });
  const RunOutcome outcome = co_await first_.Run();
  if (timer_ != 0) loop.CancelTimer(std::exchange(timer_, 0));
  if (!second_) co_return outcome;
  LeaveEngine(context_.work);
  // The error is about the request, so the second engine would return it, too.
  if (kept_ == nullptr && outcome == RunOutcome::kFailed && !first_.failure().try_elsewhere) {
    second_->GiveUp();
  }
  while (!second_outcome_) (void)co_await ended_.Wait();
  const bool won = kept_ == &*second_;
  context_.host.metrics.CountHedge(won ? "won" : kept_ == &first_ ? "lost" : "failed");
  co_return &kept() == &first_ ? outcome : *second_outcome_;
}

void Hedge::LeaveEngine(WorkMeter& work) {
  work.Leave();
  context_.route->queue->Grant(context_.host.clock.MonotonicUs());
}

void Hedge::StartSecond() {
  RunHost& host = context_.host;
  if (kept_ != nullptr || aborted_) return;
  const int64_t now_us = host.clock.MonotonicUs();
  const Route& route = *context_.route;
  std::vector<EnginePointer> tried;
  for (const EnginePointer& engine : route.engines) {
    if (engine.get() == &first_.engine()) tried.push_back(engine);
  }
  selection_ = SelectEngine(route.engines, tried, now_us, ++host.rotation, context_.need);
  if (selection_.engine == nullptr) return host.metrics.CountHedge("no_engine");
  work_.Enter(selection_.engine, selection_.work, context_.need.work.output);
  if (!route.retries->TryTake(now_us)) {
    LeaveEngine(work_);
    return host.metrics.CountHedge("refused");
  }
  engine_ = selection_.engine;
  ++context_.tries;
  host.metrics.CountChoice(selection_.reason);
  second_begun_us_ = now_us;
  second_.emplace(context_, *engine_, work_);
  second_->OnAnswer([this] { Keep(*second_); });
  host.loop.Spawn(RunSecond());
}

Task<void> Hedge::RunSecond() {
  second_outcome_ = co_await second_->Run();
  LeaveEngine(work_);
  ended_.NotifyAll();
}

void Hedge::Keep(EngineRun& run) {
  kept_ = &run;
  if (!second_) return;
  const bool second = &run == &*second_;
  (second ? first_ : *second_).GiveUp();
  if (!second) return;
  context_.NoteChoice(selection_);
  if (!context_.trace) return;
  const int64_t now_us = context_.host.clock.MonotonicUs();
  context_.trace->EndAttempt(nullptr, 0, now_us);
  context_.trace->BeginAttempt(engine_->id(), engine_->engine().kind(), NameOf(selection_.reason),
                               second_begun_us_);
}

void Hedge::Abort() {
  aborted_ = true;
  first_.Abort();
  if (!second_) return;
  // A run that has not started has nothing to abort. It detects by itself that the caller left.
  if (kept_ == nullptr && !context_.sink->cancelled()) return second_->GiveUp();
  second_->Abort();
}

EngineRun& Hedge::kept() {
  if (kept_ != nullptr) return *kept_;
  // A caller that leaves pays for the prompt if either engine has accepted it.
  return second_ && !first_.accepted() && second_->accepted() ? *second_ : first_;
}

}  // namespace tollgate::inference_router
