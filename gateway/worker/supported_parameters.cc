#include "gateway/worker/supported_parameters.h"

#include <algorithm>
#include <initializer_list>

#include "gateway/worker/catalog_view.h"

namespace tollgate::gateway {

namespace {

namespace catalog_pb = catalog::v1;

// Parameters that are missing from OpenRouter's list and need no capability.
constexpr std::string_view kAlwaysSupported[] = {
    "n",          "best_of",         "echo",      "suffix", "length_penalty",
    "min_tokens", "encoding_format", "dimensions"};

}  // namespace

std::vector<std::string_view> SupportedParameters(const catalog_pb::Model& model) {
  std::vector<std::string_view> names;
  const auto add = [&](std::initializer_list<std::string_view> more) {
    names.insert(names.end(), more);
  };
  if (HasCapability(model, catalog_pb::CAPABILITY_CHAT) ||
      HasCapability(model, catalog_pb::CAPABILITY_COMPLETION)) {
    add({"max_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
         "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "seed", "stop"});
  }
  if (HasCapability(model, catalog_pb::CAPABILITY_CHAT)) {
    add({"max_completion_tokens", "top_logprobs", "response_format", "structured_outputs"});
  }
  if (HasCapability(model, catalog_pb::CAPABILITY_TOOLS)) {
    add({"tools", "tool_choice", "parallel_tool_calls"});
  }
  if (HasCapability(model, catalog_pb::CAPABILITY_CHAT) &&
      HasCapability(model, catalog_pb::CAPABILITY_REASONING)) {
    if (model.reasoning_control()) add({"reasoning"});
    add({"include_reasoning"});
    if (model.reasoning_control()) add({"reasoning_effort"});
  }
  return names;
}

bool SupportsParameter(const catalog_pb::Model& model, std::string_view name) {
  if (std::ranges::find(kAlwaysSupported, name) != std::end(kAlwaysSupported)) return true;
  const auto supported = SupportedParameters(model);
  return std::ranges::find(supported, name) != supported.end();
}

}  // namespace tollgate::gateway
