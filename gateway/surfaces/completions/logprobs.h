// Log probabilities in the legacy format: four parallel lists with an entry per token.
// See docs/design/wire.md 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

// The log probabilities of one choice. Accepts the legacy format and that of chat completions,
// which some engines (llama.cpp) send here as well.
class LegacyLogprobs {
 public:
  // Adds the engine's logprobs value of a delta. False if it has no tokens.
  bool Add(std::string_view engine_json);
  // Appends {"tokens":…,"token_logprobs":…,"top_logprobs":…,"text_offset":…} of what was added
  // since the last call; null if nothing was.
  void Take(std::string& out);

 private:
  // Elements of the lists, without brackets.
  std::string tokens_, token_logprobs_, top_logprobs_, text_offset_;
  bool any_ = false;
  bool top_ = false;        // otherwise top_logprobs is null
  int64_t characters_ = 0;  // of the choice's text so far, for engines that send no offsets
};

}  // namespace tollgate::gateway
