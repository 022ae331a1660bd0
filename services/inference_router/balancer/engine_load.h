// What an engine says of its own load in its metrics (docs/design/wire.md 10.3). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// Of all its callers, not only of this router.
struct EngineLoad {
  static constexpr int64_t kUnknown = -1;
  // Requests that wait at the engine, and that it works on; kUnknown: it does not say.
  int64_t queued = kUnknown;
  int64_t running = kUnknown;
  // Share of its KV cache in use, from 0 to 1; negative: it does not say.
  double cache_use = -1;
  // Monotonic time from which on it says nothing of the engine's load; 0: it was never read.
  int64_t fresh_until_us = 0;

  bool Fresh(int64_t now_us) const { return now_us < fresh_until_us; }
};

// Whether engines of this kind have metrics with their load, at /metrics below the base path. Some
// have them only if they were started so (SGLang, llama.cpp).
bool MayReportLoad(catalog::v1::EngineKind kind);

// The load in the text of the metrics, as Prometheus reads it. Empty: the text has none of the
// gauges of this kind. Series of several models or ranks are added up; of their caches the fullest
// counts. Values that no load can have are not believed. fresh_until_us is not set.
std::optional<EngineLoad> ReadLoad(catalog::v1::EngineKind kind, std::string_view metrics);

}  // namespace tollgate::inference_router
