// An engine's own load as reported in its metrics (docs/design/wire.md 10.3). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// The load caused by all callers, not only by this router.
struct EngineLoad {
  static constexpr int64_t kUnknown = -1;
  // Requests that wait at the engine, and requests that it works on; kUnknown: not reported.
  int64_t queued = kUnknown;
  int64_t running = kUnknown;
  // Share of the KV cache in use, from 0 to 1; negative: not reported.
  double cache_use = -1;
  // Monotonic time from which the values are outdated; 0: never read.
  int64_t fresh_until_us = 0;

  bool Fresh(int64_t now_us) const { return now_us < fresh_until_us; }
};

// Reads the load from metrics in Prometheus format. Empty if the text has none of the gauges of
// this kind. Series of several models or ranks are added up; for their caches the maximum counts.
// Impossible values are ignored. Does not set fresh_until_us.
std::optional<EngineLoad> ReadLoad(catalog::v1::EngineKind kind, std::string_view metrics);

}  // namespace tollgate::inference_router
