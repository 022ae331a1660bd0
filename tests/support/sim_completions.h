// The simulated engine's legacy completions: several prompts, echo, log probabilities in their old
// form. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/json.h"

namespace tollgate::test {

// The prompts of a completion, or the inputs of an embedding request: a string or an array of token
// ids each.
std::vector<Json> InputsOf(const Json& value);

// The prompt as text; token 7 reads " t7".
std::string TextOfPrompt(const Json& prompt);

// {"text_offset":…,"token_logprobs":…,"tokens":…,"top_logprobs":…} of these tokens; the first one
// starts at that character of the text. As in engines, the first token of a text has no
// probability.
std::string LegacyLogprobs(const std::vector<std::string_view>& tokens, int64_t offset);

// Unicode characters.
int64_t CountCharacters(std::string_view text);

}  // namespace tollgate::test
