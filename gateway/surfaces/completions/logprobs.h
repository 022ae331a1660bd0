// Log probabilities in the legacy form: four lists side by side, an entry a token.
// spec: wire.md 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

// Of one choice, piece by piece. Reads the legacy form, and the one of chat completions, which some
// engines (llama.cpp) send here, too.
class LegacyLogprobs {
 public:
  // Takes the engine's logprobs value of the next piece of text. False when there is nothing in it.
  bool Add(std::string_view engine_json);
  // {"tokens":…,"token_logprobs":…,"top_logprobs":…,"text_offset":…} of what was added since the
  // last call; null when nothing was.
  void Take(std::string& out);

 private:
  // Elements of the lists, without brackets.
  std::string tokens_, token_logprobs_, top_logprobs_, text_offset_;
  bool any_ = false;
  bool top_ = false;        // else the list itself is null
  int64_t characters_ = 0;  // of the choice's text so far, for engines that tell no offsets
};

}  // namespace tollgate::gateway
