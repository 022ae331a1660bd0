// One request, from its arrival at the router to its End event: prepares it, runs it on one engine
// or, if that fails before any output, on another one, and settles it exactly once. One coroutine,
// on one loop.
#pragma once

#include <memory>
#include <optional>

#include "services/inference_router/balancer/select_engine.h"
#include "services/inference_router/run/engine_run.h"
#include "services/inference_router/run/engine_wait.h"
#include "services/inference_router/run/hedge.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

class RequestRun {
 public:
  RequestRun(RunHost& host, std::shared_ptr<const RoutingTable> table,
             inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink);
  ~RequestRun();

  // Call once.
  Task<void> Run();
  // Keeps the hold alive and reports progress to the ledger.
  void Heartbeat();
  // Call at the end of the process: aborts the engine, settles what was delivered, and fails the
  // request.
  void Terminate();

 private:
  bool Prepare();
  const Route* FindRoute() const;
  void Abort();
  void EndTrace(RunOutcome outcome);
  bool IsStopped();
  Task<bool> HoldUnseenTokens();
  Task<RunOutcome> RunOnEngines();
  bool MayTry(int number);
  Task<RunOutcome> RunOn(EngineState& engine, ChoiceReason reason);
  void CountRuns(RunOutcome outcome);
  // The run that counts; null: no engine was asked.
  EngineRun* run();
  void FailWithoutEngine(const Selection& selection);
  bool MayAnotherModelAnswer();
  Task<void> Finish(RunOutcome outcome);
  Task<void> CountOverflow();
  Task<void> SendEnd(inference::v1::End end);

  RunContext context_;
  EngineWait wait_{context_};
  std::optional<EngineRun> first_run_;  // the current or last run; with a hedge, the first one
  std::optional<Hedge> hedge_;
  EngineFailure failure_;         // set for a request that fails
  bool failed_by_model_ = false;  // by route or engines, not by the hold or this process
  bool terminated_ = false;
};

}  // namespace tollgate::inference_router
