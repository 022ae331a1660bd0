#include "gateway/handlers/model_entry.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "common/base/utc_text.h"
#include "common/json/json.h"
#include "common/money/money.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

namespace {

namespace pb = catalog::v1;

std::string_view CapabilityName(int capability) {
  switch (capability) {
    case pb::CAPABILITY_CHAT:
      return "chat";
    case pb::CAPABILITY_COMPLETION:
      return "completion";
    case pb::CAPABILITY_EMBEDDING:
      return "embedding";
    case pb::CAPABILITY_VISION:
      return "vision";
    case pb::CAPABILITY_TOOLS:
      return "tools";
    case pb::CAPABILITY_REASONING:
      return "reasoning";
    default:
      return {};
  }
}

bool Can(const pb::Model& model, pb::Capability capability) {
  return std::find(model.capabilities().begin(), model.capabilities().end(), capability) !=
         model.capabilities().end();
}

std::string Object(MemberWriter& members) { return "{" + members.Take() + "}"; }

std::string Strings(const std::vector<std::string_view>& texts) {
  std::string out = "[";
  for (const std::string_view text : texts) {
    if (out.size() > 1) out += ",";
    json::AppendQuoted(out, text);
  }
  return out + "]";
}

std::string Joined(const std::vector<std::string_view>& texts) {
  std::string out;
  for (const std::string_view text : texts) {
    if (!out.empty()) out += "+";
    out += text;
  }
  return out;
}

// Printed from integers: no floating point touches a price.
std::string Pricing(const tollgate::common::v1::Price& price) {
  MemberWriter out({});
  out.Add("input", PicoPerTokenToUsdPerMillion(price.input_pico_usd()));
  out.Add("output", PicoPerTokenToUsdPerMillion(price.output_pico_usd()));
  out.Add("currency", "\"USD\"");
  out.Add("unit", "\"per_million_tokens\"");
  out.Add("prompt", json::Quoted(PicoPerTokenToUsdPerToken(price.input_pico_usd())));
  out.Add("completion", json::Quoted(PicoPerTokenToUsdPerToken(price.output_pico_usd())));
  return Object(out);
}

std::string Capabilities(const pb::Model& model) {
  std::vector<std::string_view> names;
  for (const int capability : model.capabilities()) {
    if (const auto name = CapabilityName(capability); !name.empty()) names.push_back(name);
  }
  return Strings(names);
}

bool Generates(const pb::Model& model) {
  return Can(model, pb::CAPABILITY_CHAT) || Can(model, pb::CAPABILITY_COMPLETION);
}

std::string Architecture(const pb::Model& model) {
  std::vector<std::string_view> inputs = {"text"};
  if (Can(model, pb::CAPABILITY_VISION)) inputs.push_back("image");
  std::vector<std::string_view> outputs;
  if (Generates(model)) outputs.push_back("text");
  if (Can(model, pb::CAPABILITY_EMBEDDING)) outputs.push_back("embeddings");
  MemberWriter out({});
  out.Add("modality", json::Quoted(Joined(inputs) + "->" + Joined(outputs)));
  out.Add("input_modalities", Strings(inputs));
  out.Add("output_modalities", Strings(outputs));
  out.Add("tokenizer", "\"Other\"");
  out.Add("instruct_type", "null");
  return Object(out);
}

std::string TopProvider(int64_t window, int64_t output) {
  MemberWriter out({});
  out.Add("context_length", std::to_string(window));
  out.Add("max_completion_tokens", std::to_string(output));
  out.Add("is_moderated", "false");
  return Object(out);
}

// What chat and completion requests may set, by the names that OpenRouter gives them.
std::string SupportedParameters(const pb::Model& model) {
  std::vector<std::string_view> names;
  const auto add = [&](std::initializer_list<std::string_view> more) {
    names.insert(names.end(), more);
  };
  if (Generates(model)) {
    add({"max_tokens", "temperature", "top_p", "top_k", "min_p", "frequency_penalty",
         "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "seed", "stop"});
  }
  if (Can(model, pb::CAPABILITY_CHAT)) {
    add({"max_completion_tokens", "top_logprobs", "response_format", "structured_outputs"});
  }
  if (Can(model, pb::CAPABILITY_TOOLS)) add({"tools", "tool_choice", "parallel_tool_calls"});
  if (Can(model, pb::CAPABILITY_REASONING)) add({"reasoning", "reasoning_effort"});
  return Strings(names);
}

std::string Links(const pb::Model& model) {
  const bool documented = !model.documentation_url().empty();
  MemberWriter out({});
  out.Add("documentation", documented ? json::Quoted(model.documentation_url()) : "null");
  // Must be a text. Nothing else tells more about a single model.
  out.Add("details", json::Quoted(documented ? model.documentation_url() : "/v1/models"));
  return Object(out);
}

}  // namespace

std::string RenderModelEntry(const pb::Model& model) {
  const int64_t window = model.context_window();
  const int64_t output = model.max_output_tokens() > 0 ? model.max_output_tokens() : window;
  const std::string id = json::Quoted(model.id());
  const std::string name = model.display_name().empty() ? id : json::Quoted(model.display_name());
  MemberWriter out({});
  out.Add("id", id);
  out.Add("object", "\"model\"");
  out.Add("created", std::to_string(model.created_at_s()));
  out.Add("owned_by", json::Quoted(model.id().substr(0, model.id().find('/'))));
  out.Add("context_window", std::to_string(window));
  out.Add("max_output_tokens", std::to_string(output));
  if (output < window) out.Add("max_input_tokens", std::to_string(window - output));
  out.Add("pricing", Pricing(model.price()));
  out.Add("capabilities", Capabilities(model));
  out.Add("links", Links(model));
  // OpenRouter-style.
  out.Add("name", name);
  out.Add("description", json::Quoted(model.description()));
  out.Add("canonical_slug", id);
  out.Add("hugging_face_id", id);  // ids are those of the model hub (gateway-spec.md, rule 3)
  out.Add("context_length", std::to_string(window));
  out.Add("architecture", Architecture(model));
  out.Add("top_provider", TopProvider(window, output));
  out.Add("supported_parameters", SupportedParameters(model));
  out.Add("per_request_limits", "null");
  out.Add("default_parameters", "null");
  out.Add("supported_voices", "null");
  // Messages-style.
  out.Add("type", "\"model\"");
  out.Add("display_name", name);
  out.Add("created_at", json::Quoted(UtcText(model.created_at_s() * 1'000'000)));
  out.Add("lifecycle", "\"active\"");
  out.Add("max_tokens", std::to_string(output));
  return Object(out);
}

}  // namespace tollgate::gateway
