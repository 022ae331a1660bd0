// A second engine for a request whose first one shows nothing for a while (ADR 0037): the run whose
// answer begins first goes on, the other one is given up and not charged. Lives on one loop.
#pragma once

#include <optional>

#include "common/runtime/notify.h"
#include "services/inference_router/session/engine_run.h"
#include "services/inference_router/session/session_context.h"

namespace tollgate::inference_router {

class Hedge {
 public:
  // Whether the request may be asked of two engines. Only answers that engines stream: nothing
  // tells how far one is that comes whole.
  static bool Wanted(const SessionContext& context, const EngineRun& first);

  // first has not been started. Both arguments outlive the hedge.
  Hedge(SessionContext& context, EngineRun& first);
  ~Hedge();
  Hedge(const Hedge&) = delete;
  Hedge& operator=(const Hedge&) = delete;

  // Called once. The outcome of kept(), after both runs have ended.
  Task<RunOutcome> Run();
  // Ends both runs.
  void Abort();

  // The run whose answer goes to the caller; before one begins, the one that may be charged.
  EngineRun& kept();
  // A second engine was asked.
  bool begun() const { return second_.has_value(); }
  // The run that was given up or has failed. Requires begun().
  const EngineRun& other() { return &kept() == &first_ ? *second_ : first_; }
  // The second engine; null: none was asked.
  const EnginePointer& second_engine() const { return engine_; }

 private:
  void StartSecond();
  Task<void> RunSecond();
  void LeaveEngine(WorkMeter& work);
  // The answer of one run begins.
  void Keep(EngineRun& run);

  SessionContext& context_;
  EngineRun& first_;
  EnginePointer engine_;
  WorkMeter work_;
  std::optional<EngineRun> second_;
  std::optional<RunOutcome> second_outcome_;
  EngineRun* kept_ = nullptr;
  bool aborted_ = false;
  int64_t second_begun_us_ = 0;
  Selection selection_;
  Loop::TimerId timer_ = 0;
  Notify ended_;
};

}  // namespace tollgate::inference_router
