// Recognizes an engine's error text for a request that exceeds the context window, and extracts its
// numbers. See docs/design/wire.md 11.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/error/error.h"

namespace tollgate::inference_router {

struct ContextLengthPattern {
  const char* id;
  // Ambiguous pattern: accepted only with status 400, 413 or 422.
  bool weak;
  const char* regex;
};
std::span<const ContextLengthPattern> ContextLengthPatterns();

// The numbers in the engine's error; empty if it does not state them.
struct ContextLength {
  // The pattern or structured field that matched, for logs.
  std::string_view matched_by;
  std::optional<int64_t> limit;
  std::optional<int64_t> prompt;
  std::optional<int64_t> output;
  std::optional<int64_t> total;
  // The engine stopped counting early: prompt and total are lower bounds.
  bool prompt_is_lower_bound = false;
};

// status 0: an error inside a stream.
std::optional<ContextLength> MatchContextLength(std::string_view text, int status);

// The numbers for the response. Missing ones are derived from the numbers that the engine states.
// window: the model's context window in the catalog (0: unknown). It replaces a missing limit
// unless the other numbers show that another limit was exceeded.
TokenAccounting AccountTokens(const ContextLength& found, int64_t window);

// The public message, which includes the phrase that clients match when the window is known
// (decision 32). total: tokens of prompt and output, used when the parts are unknown; 0: unknown.
std::string ContextLengthMessage(const TokenAccounting& tokens, int64_t total = 0);

}  // namespace tollgate::inference_router
