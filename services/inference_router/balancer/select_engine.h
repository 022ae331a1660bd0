// Selects the engine of a request among those of its pool (ADR 0029, ADR 0032): where its session
// goes, else where most of its prompt may be cached, as long as that engine has not much more to do
// than the others; else where there is least to do. What an engine has to do counts in relation to
// its share (EngineState::Share).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "services/inference_router/balancer/engine_state.h"
#include "services/inference_router/balancer/prefix_chain.h"
#include "services/inference_router/balancer/prefix_table.h"
#include "services/inference_router/balancer/work_meter.h"

namespace tollgate::inference_router {

// Why no engine was selected. kSaturated: all that are up are full or paused.
enum class NoEngine : uint8_t { kNone, kDown, kSaturated };

// Why this engine was selected.
enum class ChoiceReason : uint8_t {
  kOnly,     // no other could be
  kSession,  // it had the caller's session last
  kPrefix,   // it was given most of the prompt before
  kLoad,     // it has least to do
};
constexpr size_t kChoiceReasons = 4;

// For metrics and traces, such as "prefix".
constexpr std::string_view NameOf(ChoiceReason reason) {
  constexpr std::string_view kNames[kChoiceReasons] = {"only", "session", "prefix", "load"};
  return kNames[static_cast<size_t>(reason)];
}

// What is known of a request. The pointers may be null: then no prefix is looked for.
struct EngineNeed {
  RequestWork work;
  const PrefixChain* prefix = nullptr;
  // Of the pool. Learns what was selected.
  PrefixTable* prefixes = nullptr;
  // Of the caller's session, for the same table; 0: it has named none.
  uint64_t session = 0;
};

struct Selection {
  // Null if none was selected. EngineState::TryEnter has been called with `work`; the caller must
  // call Leave.
  EnginePointer engine;
  // The request's work there in tokens, without what may be cached.
  int64_t work = 0;
  // What the engine had to do before, in tokens.
  int64_t outstanding = 0;
  ChoiceReason reason = ChoiceReason::kOnly;
  NoEngine no_engine = NoEngine::kNone;
  int64_t retry_after_ms = 0;
};

// Milliseconds until the first engine can be asked again, if all that are up have asked for a
// pause; else 0.
int64_t PauseMs(const std::vector<EnginePointer>& engines, int64_t now_us);

// Skips the engines in `tried`. The same arguments and states of engines give the same answer;
// `rotation` breaks ties evenly if it grows by one per call.
Selection SelectEngine(const std::vector<EnginePointer>& engines,
                       const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t rotation,
                       const EngineNeed& need = {});

}  // namespace tollgate::inference_router
