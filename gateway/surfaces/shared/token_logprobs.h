// Log probabilities of tokens in the form of the public chat formats.
#pragma once

#include <cstdint>
#include <string>

#include "common/json/json.h"

namespace tollgate::gateway {

// What stands for the bytes of a token when the engine does not tell them.
enum class UntoldBytes : uint8_t {
  kNull,      // chat completions: the key is required, its value may be null
  kFromText,  // responses: it may not
};

// The elements of an engine's list of tokens, with commas between them and no brackets:
// {"token","logprob","bytes","top_logprobs"}, all of them required, and nothing that an engine adds
// (decisions.md 31). Empty when there are none.
std::string PublicTokens(json::Value tokens, UntoldBytes untold);

}  // namespace tollgate::gateway
