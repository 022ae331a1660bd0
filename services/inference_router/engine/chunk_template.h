// Uses the last chunk of a stream as a pattern for the next: most chunks differ from the one before
// only in their text and usage counts and need not be parsed. A chunk that matches is the same JSON
// except for these values, so the result is the same as that of parsing it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"
#include "services/inference_router/domain/engine_usage.h"

namespace tollgate::inference_router {

class ChunkTemplate {
 public:
  bool known() const { return !literals_.empty(); }
  void Forget() { literals_.clear(); }
  // data: a chunk. text: the string in it that changes in the next chunk. usage: its usage object,
  // read as `counts`, if it has one.
  void Learn(std::string_view data, const json::Value& text, const json::Value& usage,
             const std::optional<EngineUsage>& counts);

  struct Values {
    std::string_view text;  // the chunk's text, escaped
    std::optional<EngineUsage> usage;
  };
  // Empty when the chunk must be parsed: it differs in more, or its values are not plain.
  std::optional<Values> Match(std::string_view data) const;

 private:
  enum class Kind { kText, kPrompt, kCompletion, kCached, kCacheWrite, kReasoning, kTotal };
  struct Slot {
    size_t begin = 0;  // range in the learned chunk
    size_t end = 0;
    Kind kind = Kind::kText;
  };
  static void Set(EngineUsage& usage, Kind kind, int64_t count);

  std::string literals_;      // the chunk without its values
  std::vector<Slot> slots_;   // in the order of their positions
  std::vector<size_t> runs_;  // bytes of literals_ before each slot
  std::optional<EngineUsage> usage_;
};

}  // namespace tollgate::inference_router
