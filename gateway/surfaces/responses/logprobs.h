// Log probabilities of output text in their public form.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::gateway {

// The tokens of an engine's (chat) logprobs value as elements of output_text.logprobs, with commas
// between them: {"token","logprob","bytes","top_logprobs"}, all of them required. Empty when there
// are none.
std::string ResponseLogprobs(std::string_view engine_json);

}  // namespace tollgate::gateway
