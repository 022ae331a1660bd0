// What a request takes of an engine, in tokens, and what is left of it while it runs. One token of
// a prompt counts for one, one of the output for kOutputWeight: prompts are read in parallel, an
// output takes a step for each token.
#pragma once

#include <cstdint>

#include "services/inference_router/balancer/engine_state.h"

namespace tollgate::inference_router {

constexpr int64_t kOutputWeight = 4;

// Estimates, in tokens.
struct RequestWork {
  int64_t prompt = 0;
  int64_t output = 0;  // of all choices together

  int64_t total() const { return prompt + output * kOutputWeight; }
};

// A request's place at one engine after another; each time from Enter to Leave. Lives on one loop.
class WorkMeter {
 public:
  WorkMeter() = default;
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;
  ~WorkMeter() { Leave(); }

  // EngineState::TryEnter has counted this much. output: as in RequestWork.
  void Enter(EnginePointer engine, int64_t work, int64_t output);
  // The completion tokens so far, all choices together. With the first the prompt has been read.
  void OnOutput(int64_t tokens);
  // Gives the place back, if there is one.
  void Leave();

 private:
  EnginePointer engine_;
  int64_t left_ = 0;    // counted at the engine
  int64_t output_ = 0;  // tokens that are expected
};

}  // namespace tollgate::inference_router
