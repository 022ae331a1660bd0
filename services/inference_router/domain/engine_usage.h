// Token counts as the engine reports them, not yet checked (token_meter.h).
#pragma once

#include <cstdint>
#include <optional>

namespace tollgate::inference_router {

struct EngineUsage {
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> completion_tokens;
  int64_t cached_tokens = 0;
  int64_t cache_write_tokens = 0;
  int64_t reasoning_tokens = 0;
  // The choice of the chunk with the report; -1 if the chunk had none or several.
  int choice = -1;
};

}  // namespace tollgate::inference_router
