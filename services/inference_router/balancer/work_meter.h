// The work that a request causes on an engine, in tokens, and what is left of it while the request
// runs. A prompt token counts as one, an output token as kOutputWeight: prompts are read in
// parallel, but each output token takes a step.
#pragma once

#include <cstdint>

#include "services/inference_router/balancer/engine_state.h"

namespace tollgate::inference_router {

constexpr int64_t kOutputWeight = 4;

// Estimated work in tokens.
struct RequestWork {
  int64_t prompt = 0;
  int64_t output = 0;  // all choices together

  int64_t total() const { return prompt + output * kOutputWeight; }
};

// A request's place on its engines, one after another, each from Enter to Leave. Lives on one loop.
class WorkMeter {
 public:
  WorkMeter() = default;
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;
  ~WorkMeter() { Leave(); }

  // Call after EngineState::TryEnter with the same work. output: as in RequestWork.
  void Enter(EnginePointer engine, int64_t work, int64_t output);
  // Call with the completion tokens so far of all choices. The first token means that the prompt
  // was read.
  void OnOutput(int64_t tokens);
  // Gives up the place, if there is one.
  void Leave();

 private:
  EnginePointer engine_;
  int64_t left_ = 0;    // counted at the engine
  int64_t output_ = 0;  // expected tokens
};

}  // namespace tollgate::inference_router
