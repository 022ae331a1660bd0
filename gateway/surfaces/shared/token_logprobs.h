// Log probabilities of tokens in the format of the public chat APIs.
#pragma once

#include <cstdint>
#include <string>

#include "common/json/json.h"

namespace tollgate::gateway {

// Value of `bytes` for a token for which the engine sends none.
enum class MissingBytes : uint8_t {
  kNull,      // chat completions: the key is required, the value may be null
  kFromText,  // Responses: the value must not be null
};

// Reduces the elements of an engine's token list to {"token","logprob","bytes","top_logprobs"}, all
// required (decision 31), and returns them comma-separated without brackets. Empty if there are
// none.
std::string PublicTokenLogprobs(json::Value tokens, MissingBytes missing_bytes);

}  // namespace tollgate::gateway
