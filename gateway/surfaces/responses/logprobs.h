// Log probabilities of output text in the public format.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::gateway {

// Converts the tokens of an engine's (chat) logprobs value to comma-separated elements of
// output_text.logprobs: {"token","logprob","bytes","top_logprobs"}, all required. Empty if there
// are none.
std::string ResponseLogprobs(std::string_view engine_json);

}  // namespace tollgate::gateway
