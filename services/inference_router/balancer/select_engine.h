// Selects the engine of a request from its pool (ADR 0029, ADR 0032): the engine of its session,
// else the engine that may have cached most of the prompt, if it is not much busier than the
// others, else the least loaded engine. Load counts in relation to an engine's share
// (EngineState::Share).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "services/inference_router/balancer/engine_state.h"
#include "services/inference_router/balancer/prefix_chain.h"
#include "services/inference_router/balancer/prefix_table.h"
#include "services/inference_router/balancer/work_meter.h"

namespace tollgate::inference_router {

// Why no engine was selected. kSaturated: all available engines are full or paused. kQueueFull: so
// is the pool's queue.
enum class NoEngine : uint8_t { kNone, kDown, kSaturated, kQueueFull };

// Why this engine was selected.
enum class ChoiceReason : uint8_t {
  kOnly,     // no other engine was possible
  kSession,  // it served the session last
  kPrefix,   // it was given most of the prompt before
  kLoad,     // it has the least work
};
constexpr size_t kChoiceReasons = 4;

// The name for metrics and traces, such as "prefix".
constexpr std::string_view NameOf(ChoiceReason reason) {
  constexpr std::string_view kNames[kChoiceReasons] = {"only", "session", "prefix", "load"};
  return kNames[static_cast<size_t>(reason)];
}

// What is known about a request. The pointers may be null: then no prefix is looked up.
struct EngineNeed {
  RequestWork work;
  const PrefixChain* prefix = nullptr;
  // The pool's table. Updated with the selection.
  PrefixTable* prefixes = nullptr;
  // Hash of the caller's session for the same table; 0: no session.
  uint64_t session = 0;
};

struct Selection {
  // Null if none was selected. EngineState::TryEnter has been called with `work`, so the caller
  // must call Leave.
  EnginePointer engine;
  // The request's work on this engine in tokens, without the part that may be cached.
  int64_t work = 0;
  // Outstanding work of the engine before this request, in tokens.
  int64_t outstanding = 0;
  ChoiceReason reason = ChoiceReason::kOnly;
  NoEngine no_engine = NoEngine::kNone;
  int64_t retry_after_ms = 0;
};

// Milliseconds until the first engine can be used again if all available engines have asked for a
// pause; else 0.
int64_t PauseMs(const std::vector<EnginePointer>& engines, int64_t now_us);

// Skips the engines in `tried`. Deterministic for the same arguments and states of engines.
// `rotation` breaks ties evenly if it grows by one per call.
Selection SelectEngine(const std::vector<EnginePointer>& engines,
                       const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t rotation,
                       const EngineNeed& need = {});

}  // namespace tollgate::inference_router
