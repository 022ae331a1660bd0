// Finds out whether an engine's error text says that the request is longer than the context window,
// and which numbers it names. spec: wire.md 11.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

// The public text, with the fragment that agents look for when the window is known (decisions 32).
std::string ContextLengthMessage(const ContextLength& found);

}  // namespace tollgate::inference_router
