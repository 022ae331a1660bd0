#include "services/inference_router/balancer/select_engine.h"

#include <algorithm>

namespace tollgate::inference_router {

Selection SelectEngine(const std::vector<EnginePointer>& engines,
                       const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t rotation) {
  Selection selection;
  bool saturated = false;
  // Another thread may take the last place of an engine between the comparison and TryEnter; then
  // the next best engine is taken.
  std::vector<EnginePointer> full;
  for (size_t round = 0; round <= engines.size(); ++round) {
    EnginePointer best;
    for (size_t i = 0; i < engines.size(); ++i) {
      const EnginePointer& engine = engines[(i + rotation) % engines.size()];
      if (!engine->Available(now_us)) continue;
      if (std::find(tried.begin(), tried.end(), engine) != tried.end()) continue;
      if (std::find(full.begin(), full.end(), engine) != full.end()) continue;
      if (best == nullptr || engine->running() < best->running()) best = engine;
    }
    if (best == nullptr) break;
    if (best->TryEnter()) {
      selection.engine = std::move(best);
      return selection;
    }
    saturated = true;
    full.push_back(std::move(best));
  }
  selection.no_engine = saturated ? NoEngine::kSaturated : NoEngine::kDown;
  selection.retry_after_ms = 1000;
  if (!saturated && !engines.empty()) {
    selection.retry_after_ms = INT64_MAX;
    for (const EnginePointer& engine : engines) {
      selection.retry_after_ms = std::min(selection.retry_after_ms, engine->RetryAfterMs(now_us));
    }
  }
  return selection;
}

}  // namespace tollgate::inference_router
