// Asks a second engine when the first one has sent nothing for a while (ADR 0037). The run whose
// answer begins first continues; the other one is given up and not charged. Lives on one loop.
#pragma once

#include <optional>

#include "common/runtime/notify.h"
#include "services/inference_router/run/engine_run.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

class Hedge {
 public:
  // Whether two engines may be asked. Only for answers that engines stream: the progress of an
  // answer that arrives as a whole is unknown.
  static bool Wanted(const RunContext& context, const EngineRun& first);

  // `first` must not be started yet. Both arguments must outlive the hedge.
  Hedge(RunContext& context, EngineRun& first);
  ~Hedge();
  Hedge(const Hedge&) = delete;
  Hedge& operator=(const Hedge&) = delete;

  // Call once. Returns the outcome of kept(), after both runs have ended.
  Task<RunOutcome> Run();
  // Ends both runs.
  void Abort();

  // The run whose answer goes to the caller. Before an answer begins, the run that may be charged.
  EngineRun& kept();
  // Whether a second engine was asked.
  bool begun() const { return second_.has_value(); }
  // The run that was given up or has failed. Requires begun().
  const EngineRun& other() { return &kept() == &first_ ? *second_ : first_; }
  // The second engine; null: none was asked.
  const EnginePointer& second_engine() const { return engine_; }

 private:
  void StartSecond();
  Task<void> RunSecond();
  void LeaveEngine(WorkMeter& work);
  // Called when the answer of a run begins.
  void Keep(EngineRun& run);

  RunContext& context_;
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
