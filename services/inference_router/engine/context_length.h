// Finds out whether an engine's error text says that the request is longer than the context window,
// and which numbers it names. spec: wire.md 11.
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
  // Proves nothing by itself: believed with status 400, 413 or 422 only.
  bool weak;
  const char* regex;
};
std::span<const ContextLengthPattern> ContextLengthPatterns();

// What the engine said; a number is absent when it did not say it.
struct ContextLength {
  // The pattern or the structured field that matched, for logs.
  std::string_view matched_by;
  std::optional<int64_t> limit;
  std::optional<int64_t> prompt;
  std::optional<int64_t> output;
  std::optional<int64_t> total;
  // The engine stopped counting: prompt (and total) are lower bounds.
  bool prompt_is_lower_bound = false;
};

// status 0 stands for an error inside a stream.
std::optional<ContextLength> MatchContextLength(std::string_view text, int status);

// The numbers for the caller. What the engine did not say is taken from what it said, or from the
// catalog: window is the model's context window there (0: unknown), which stands in for the limit
// unless the other numbers show that another limit was hit.
TokenAccounting AccountTokens(const ContextLength& found, int64_t window);

// The plain public text, with the fragment that agents look for when the window is known (decisions
// 32). total: of prompt and output, for when nobody told the parts; 0: unknown.
std::string ContextLengthMessage(const TokenAccounting& tokens, int64_t total = 0);

}  // namespace tollgate::inference_router
