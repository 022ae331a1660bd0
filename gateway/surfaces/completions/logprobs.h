// Log probabilities in the legacy format: four parallel lists with one entry per token. See
// docs/design/wire.md 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

// The log probabilities of one choice. Accepts the legacy format and that of chat completions,
// which some engines (llama.cpp) send on this endpoint, too.
class LegacyLogprobs {
 public:
  // Adds the engine's logprobs value of a delta. Returns false if it has no tokens.
  bool Add(std::string_view engine_json);
  // Appends {"tokens":…,"token_logprobs":…,"top_logprobs":…,"text_offset":…} with everything added
  // since the last call, or null if nothing was added.
  void Take(std::string& out);

 private:
  // Elements of the lists, without brackets.
  std::string tokens_, token_logprobs_, top_logprobs_, text_offset_;
  bool any_ = false;
  bool top_ = false;        // false: top_logprobs is null
  int64_t characters_ = 0;  // length of the choice's text so far, for engines that send no offsets
};

}  // namespace tollgate::gateway
