// Picks the engine of a pool that gets a request: the available one with the fewest running
// requests.
#pragma once

#include <cstdint>
#include <vector>

#include "services/inference_router/balancer/engine_state.h"

namespace tollgate::inference_router {

// Why no engine was selected.
enum class NoEngine { kNone, kDown, kSaturated };

struct Selection {
  // Null if none was selected. EngineState::TryEnter has been called; the caller must call Leave.
  EnginePointer engine;
  NoEngine no_engine = NoEngine::kNone;
  int64_t retry_after_ms = 0;
};

// Selects the available engine with the fewest running requests of this process. Skips the engines
// in `tried`. `rotation` breaks ties evenly if it grows by one per call.
Selection SelectEngine(const std::vector<EnginePointer>& engines,
                       const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t rotation);

}  // namespace tollgate::inference_router
