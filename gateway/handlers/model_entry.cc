#include "gateway/handlers/model_entry.h"

#include <string_view>
#include <vector>

#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "common/money/money.h"
#include "gateway/worker/catalog_view.h"
#include "gateway/worker/supported_parameters.h"

namespace tollgate::gateway {

namespace {

namespace catalog_pb = catalog::v1;
using Strings = std::vector<std::string_view>;

std::string_view CapabilityName(int capability) {
  switch (capability) {
    case catalog_pb::CAPABILITY_CHAT:
      return "chat";
    case catalog_pb::CAPABILITY_COMPLETION:
      return "completion";
    case catalog_pb::CAPABILITY_EMBEDDING:
      return "embedding";
    case catalog_pb::CAPABILITY_VISION:
      return "vision";
    case catalog_pb::CAPABILITY_TOOLS:
      return "tools";
    case catalog_pb::CAPABILITY_REASONING:
      return "reasoning";
    default:
      return {};
  }
}

std::string ArrayOf(const Strings& strings) {
  return json::WriteArray(strings, [](std::string_view text) { return json::Quoted(text); });
}

std::string JoinWithPlus(const Strings& strings) {
  std::string out;
  for (const std::string_view text : strings) {
    if (!out.empty()) out += "+";
    out += text;
  }
  return out;
}

// Printed from integers: prices never pass through floating point.
std::string Pricing(const tollgate::common::v1::Price& price) {
  return json::Writer()
      .Raw("input", PicoPerTokenToUsdPerMillion(price.input_pico_usd()))
      .Raw("output", PicoPerTokenToUsdPerMillion(price.output_pico_usd()))
      .Text("currency", "USD")
      .Text("unit", "per_million_tokens")
      .Text("prompt", PicoPerTokenToUsdPerToken(price.input_pico_usd()))
      .Text("completion", PicoPerTokenToUsdPerToken(price.output_pico_usd()))
      .Done();
}

std::string Capabilities(const catalog_pb::Model& model) {
  Strings names;
  for (const int capability : model.capabilities()) {
    if (const auto name = CapabilityName(capability); !name.empty()) names.push_back(name);
  }
  return ArrayOf(names);
}

bool GeneratesText(const catalog_pb::Model& model) {
  return HasCapability(model, catalog_pb::CAPABILITY_CHAT) ||
         HasCapability(model, catalog_pb::CAPABILITY_COMPLETION);
}

bool Reasons(const catalog_pb::Model& model) {
  return HasCapability(model, catalog_pb::CAPABILITY_CHAT) &&
         HasCapability(model, catalog_pb::CAPABILITY_REASONING);
}

std::string Architecture(const catalog_pb::Model& model) {
  Strings inputs = {"text"};
  if (HasCapability(model, catalog_pb::CAPABILITY_VISION)) inputs.push_back("image");
  Strings outputs;
  if (GeneratesText(model)) outputs.push_back("text");
  if (HasCapability(model, catalog_pb::CAPABILITY_EMBEDDING)) outputs.push_back("embeddings");
  return json::Writer()
      .Text("modality", JoinWithPlus(inputs) + "->" + JoinWithPlus(outputs))
      .Raw("input_modalities", ArrayOf(inputs))
      .Raw("output_modalities", ArrayOf(outputs))
      .Text("tokenizer", "Other")
      .Null("instruct_type")
      .Done();
}

std::string TopProvider(int64_t window, int64_t max_output) {
  return json::Writer()
      .Number("context_length", window)
      .Number("max_completion_tokens", max_output)
      .Flag("is_moderated", false)
      .Done();
}

// The members of `reasoning` that have an effect in chat requests. Without max_tokens, a budget is
// converted to an effort level.
std::string ReasoningParameters(const catalog_pb::Model& model) {
  if (!Reasons(model)) return "[]";
  Strings names;
  if (model.reasoning_control()) names = {"enabled", "effort"};
  if (model.reasoning_budget()) names.push_back("max_tokens");
  names.push_back("exclude");
  return ArrayOf(names);
}

std::string Links(const catalog_pb::Model& model) {
  const bool documented = !model.documentation_url().empty();
  return json::Writer()
      .Raw("documentation", documented ? json::Quoted(model.documentation_url()) : "null")
      // Must be a string. If the model has no page, the list is its only description.
      .Text("details", documented ? model.documentation_url() : "/v1/models")
      .Done();
}

}  // namespace

std::string RenderModelEntry(const catalog_pb::Model& model) {
  const int64_t window = model.context_window();
  const int64_t max_output = model.max_output_tokens() > 0 ? model.max_output_tokens() : window;
  const std::string& id = model.id();
  const std::string& name = model.display_name().empty() ? id : model.display_name();
  json::Writer out;
  out.Text("id", id)
      .Text("object", "model")
      .Number("created", model.created_at_s())
      .Text("owned_by", id.substr(0, id.find('/')))
      .Number("context_window", window)
      .Number("max_output_tokens", max_output);
  if (max_output < window) out.Number("max_input_tokens", window - max_output);
  out.Raw("pricing", Pricing(model.price()))
      .Raw("capabilities", Capabilities(model))
      .Raw("links", Links(model));
  // For OpenRouter-style clients. Ids are those of the model hub (docs/contract.md, rule 3).
  out.Text("name", name)
      .Text("description", model.description())
      .Text("canonical_slug", id)
      .Text("hugging_face_id", id)
      .Number("context_length", window)
      .Raw("architecture", Architecture(model))
      .Raw("top_provider", TopProvider(window, max_output))
      .Raw("supported_parameters", ArrayOf(SupportedParameters(model)))
      .Raw("reasoning_parameters", ReasoningParameters(model))
      .Null("per_request_limits")
      .Null("default_parameters")
      .Null("supported_voices");
  // For clients of the Messages family.
  out.Text("type", "model")
      .Text("display_name", name)
      .Text("created_at", UtcText(model.created_at_s() * 1'000'000))
      .Text("lifecycle", "active")
      .Number("max_tokens", max_output);
  return out.Done();
}

}  // namespace tollgate::gateway
