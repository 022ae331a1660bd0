// The last chunk of a stream as a pattern for the next: most chunks differ from the one before only
// in their text and in the counts of their usage, and need not be parsed. A chunk that matches is
// the same JSON but for these values, so that reading it comes to the same.
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
  // `data` is a chunk, `text` the string in it that will be another one in the next, and `usage`
  // its usage object, read as `counts`, if it has one.
  void Learn(std::string_view data, const json::Value& text, const json::Value& usage,
             const std::optional<EngineUsage>& counts);

  struct Values {
    std::string_view text;  // escaped, of the chunk
    std::optional<EngineUsage> usage;
  };
  // Empty when the chunk must be parsed: it differs in more, or the values are not plain ones.
  std::optional<Values> Match(std::string_view data) const;

 private:
  enum class Kind { kText, kPrompt, kCompletion, kCached, kCacheWrite, kReasoning, kTotal };
  struct Slot {
    size_t begin = 0;  // within the chunk that was learned, and its end
    size_t end = 0;
    Kind kind = Kind::kText;
  };
  static void Set(EngineUsage& usage, Kind kind, int64_t count);

  std::string literals_;      // the chunk without its values
  std::vector<Slot> slots_;   // in order of their places
  std::vector<size_t> runs_;  // bytes of literals_ before each slot
  std::optional<EngineUsage> usage_;
};

}  // namespace tollgate::inference_router
