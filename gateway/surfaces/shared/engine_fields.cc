#include "gateway/surfaces/shared/engine_fields.h"

#include <string>

#include "common/base/try.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

constexpr std::string_view kChatTemplate = "chat_template";
constexpr std::string_view kTemplateArguments = "chat_template_kwargs";
constexpr std::string_view kCacheSalt = "cache_salt";
constexpr std::string_view kUsage = "usage";

// Members listed here or in a surface's table have a rule; all others are forwarded unchanged
// (decision 17).
constexpr FieldRule kEngineRules[] = {
    {"temperature", kNumber, kForward, 0, 2},
    {"top_p", kNumber, kForward, 0, 1},
    {"frequency_penalty", kNumber, kForward, -2, 2},
    {"presence_penalty", kNumber, kForward, -2, 2},
    {"seed", kInteger, kForward},
    {"logit_bias", kObject, kForward},
    {"stop", kAny, kForward},
    // Members of the public formats that are accepted and ignored (docs/design/wire.md 2.1).
    {"user", kAny, kDrop},
    {"metadata", kAny, kDrop},
    {"store", kAny, kDrop},
    {"service_tier", kAny, kDrop},
    {"safety_identifier", kAny, kDrop},
    {"prompt_cache_key", kAny, kDrop},
    {"prompt_cache_retention", kAny, kDrop},
    {"verbosity", kAny, kDrop},
    {"prediction", kAny, kDrop},
    {"modalities", kAny, kDrop},
    {"audio", kAny, kDrop},
    {"web_search_options", kAny, kDrop},
    // Numeric engine parameters outside the public formats.
    {"top_k", kInteger, kForward, -1},
    {"min_p", kNumber, kForward, 0, 1},
    {"repetition_penalty", kNumber, kForward, 0},
    {"length_penalty", kNumber, kForward},
    {"min_tokens", kInteger, kForward, 0},
    // A template that the engine would run; refused unless the model's catalog entry allows it
    // (decision 45).
    {kChatTemplate, kString, kForward},
    // Members that select models and providers (routing.h).
    {"models", kAny, kConsume},
    {"provider", kAny, kConsume},
    {"route", kAny, kConsume},
    {"transforms", kAny, kConsume},
    {"plugins", kAny, kConsume},
    // Asks for the cost in the answer's usage.
    {kUsage, kObject, kConsume},
    // The router combines it with the workspace's own salt; engines only get the combined salt.
    {kCacheSalt, kString, kConsume},
    // Code or a pattern that the engine would run in a process shared by all tenants.
    {"custom_logit_processor", kAny, kRefuse},
    {"logits_processors", kAny, kRefuse},
    {"stop_regex", kAny, kRefuse},
    {"chat_parser", kAny, kRefuse},
    // Members that affect more than the request: they select queues, slots, adapters, sessions,
    // caches or request ids that tenants share, configure media readers, open connections, or
    // bypass max_tokens and n.
    {"priority", kAny, kDrop},
    {"extra_key", kAny, kDrop},
    {"session_id", kAny, kDrop},
    {"ngram_corpus_id", kAny, kDrop},
    {"custom_params", kAny, kDrop},
    {"custom_labels", kAny, kDrop},
    {"mm_processor_kwargs", kAny, kDrop},
    {"media_io_kwargs", kAny, kDrop},
    {"images_config", kAny, kDrop},
    {"ec_transfer_params", kAny, kDrop},
    {"disaggregated_params", kAny, kDrop},
    {"bootstrap_pair_key", kAny, kDrop},
    {"routed_dp_rank", kAny, kDrop},
    {"disagg_prefill_dp_rank", kAny, kDrop},
    {"request_id", kAny, kDrop},
    {"rid", kAny, kDrop},
    {"kv_transfer_params", kAny, kDrop},
    {"bootstrap_host", kAny, kDrop},
    {"bootstrap_port", kAny, kDrop},
    {"bootstrap_room", kAny, kDrop},
    {"data_parallel_rank", kAny, kDrop},
    {"session_params", kAny, kDrop},
    {"lora_path", kAny, kDrop},
    {"lora", kAny, kDrop},
    {"lora_request", kAny, kDrop},
    {"adapter_id", kAny, kDrop},
    {"id_slot", kAny, kDrop},
    {"n_predict", kAny, kDrop},
    {"n_cmpl", kAny, kDrop},
    {"max_new_tokens", kAny, kDrop},
    {"n_probs", kAny, kDrop},
    {"prompt_logprobs", kAny, kDrop},
    {"return_token_ids", kAny, kDrop},
    {"return_hidden_states", kAny, kDrop},
    {"return_routed_experts", kAny, kDrop},
    {"return_prompt_text", kAny, kDrop},
    {"return_prompt_token_ids", kAny, kDrop},
    {"return_meta_info", kAny, kDrop},
    {"vllm_xargs", kAny, kDrop},
    // A second prompt, in forms that are not measured.
    {"prompt_embeds", kAny, kDrop},
    {"input_embeds", kAny, kDrop},
    {"input_ids", kAny, kDrop},
    {"image_data", kAny, kDrop},
    {"video_data", kAny, kDrop},
    {"audio_data", kAny, kDrop},
    {"multi_modal_data", kAny, kDrop},
    {"multimodal_data", kAny, kDrop},
    // False makes an engine hide its reasoning tokens, so that its usage could not be verified
    // (docs/adr/0004).
    {"include_reasoning", kAny, kDrop},
};

constexpr std::string_view kPromptFields[] = {"documents", kChatTemplate,     kTemplateArguments,
                                              "functions", "response_format", "tool_prompt"};

// Arguments of the function that applies the template, as opposed to the template's own: some
// replace the function's result, some run its whole text through the tokenizer in the engine's main
// loop.
constexpr std::string_view kFunctionArguments[] = {
    "conversation",     "messages", "tokenize",   "return_dict", "return_tensors",
    "tokenizer_kwargs", "padding",  "truncation", "max_length",  "return_assistant_tokens_mask"};

// Limit of vLLM.
constexpr size_t kMaxCacheSalt = 1024;

// Engines require top_p above 0. This value is equivalent to 0: only the most likely token.
constexpr std::string_view kMinTopP = "1e-6";

constexpr size_t kMaxLogitBias = 1024;

Result<void> CheckStop(json::Value stop) {
  if (stop.is_string()) return {};
  if (!stop.is_array()) {
    return BadRequest("'stop' must be a string or an array of strings.", "stop");
  }
  if (stop.size() > kMaxStops) {
    return BadRequest("'stop' may hold at most " + std::to_string(kMaxStops) + " strings.", "stop");
  }
  for (const json::Value item : stop) {
    if (!item.is_string()) {
      return BadRequest("'stop' must be a string or an array of strings.", "stop");
    }
  }
  return {};
}

Result<void> CheckLogitBias(json::Value bias) {
  if (bias.size() > kMaxLogitBias) {
    return BadRequest("'logit_bias' may hold at most " + std::to_string(kMaxLogitBias) + " tokens.",
                      "logit_bias");
  }
  for (const json::Value item : bias) {
    const auto number = item.Number();
    if (!number || *number < -100 || *number > 100) {
      return BadRequest("'logit_bias' values must be numbers between -100 and 100.", "logit_bias");
    }
  }
  return {};
}

// Drops empty strings, which should match nothing: one engine refuses them, another stops
// immediately.
void ForwardStop(json::Value stop, MemberWriter& writer) {
  if (stop.is_string()) {
    if (!stop.raw_string().empty()) writer.Forward(stop);
    return;
  }
  size_t count = 0;
  std::string kept;
  for (const json::Value text : stop) {
    if (text.raw_string().empty()) continue;
    ++count;
    kept += kept.empty() ? "[" : ",";
    kept += text.raw();
  }
  if (count == stop.size()) return writer.Forward(stop);
  if (count > 0) writer.Add("stop", kept + "]");
}

}  // namespace

const FieldRule* FindEngineField(json::Value member) { return FindRule(kEngineRules, member); }

Result<void> CheckEngineField(const FieldRule& rule, json::Value value) {
  TRY(CheckField(rule, value));
  if (rule.action == kRefuse) {
    return BadRequest(
        "'" + std::string(rule.name) + "' is not accepted: it would run on the engine.",
        std::string(rule.name));
  }
  if (rule.name == kCacheSalt && value.raw_string().size() > kMaxCacheSalt) {
    return BadRequest("'cache_salt' may have at most " + std::to_string(kMaxCacheSalt) + " bytes.",
                      std::string(kCacheSalt));
  }
  if (rule.name == kUsage && !value.Find("include").is_null() && !value.Find("include").is_bool()) {
    return BadRequest("'usage.include' must be true or false.", std::string(kUsage));
  }
  if (rule.name == "stop") return CheckStop(value);
  if (rule.name == "logit_bias") return CheckLogitBias(value);
  return {};
}

void ReadEngineField(const FieldRule& rule, json::Value member, CanonicalRequest& request) {
  if (rule.name == kChatTemplate) request.template_member = kChatTemplate;
  if (rule.name == kCacheSalt) request.cache_salt = member.string();
  if (rule.name == kUsage) request.include_cost = member.Find("include").boolean();
}

Result<void> CheckTemplateArguments(json::Value member, CanonicalRequest& request) {
  if (!member.is_object() || !member.KeyEquals(kTemplateArguments)) return {};
  for (const json::Value argument : member) {
    if (argument.KeyEquals(kChatTemplate) && !argument.is_null())
      request.template_member = kTemplateArguments;
    for (const std::string_view name : kFunctionArguments) {
      if (!argument.KeyEquals(name)) continue;
      return BadRequest("'chat_template_kwargs' must not hold '" + std::string(name) + "'.",
                        std::string(kTemplateArguments));
    }
  }
  return {};
}

void ForwardEngineField(const FieldRule& rule, json::Value member, MemberWriter& writer) {
  if (rule.name == "stop") return ForwardStop(member, writer);
  if (rule.name == "response_format" && member.Find("type").StringEquals("text")) return;
  if (rule.name == "top_p" && *member.Number() == 0) return writer.Add("top_p", kMinTopP);
  if (rule.name == "top_k" && *member.Integer() == 0) return writer.Add("top_k", "-1");
  if (rule.kind == FieldKind::kInteger) return writer.ForwardInteger(member);
  writer.Forward(member);
}

Result<void> CheckReasoningEffort(json::Value effort, std::string_view field) {
  for (const char* known : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (effort.StringEquals(known)) return {};
  }
  return BadRequest("'" + std::string(field) +
                        "' must be one of none, minimal, low, medium, high, xhigh and max.",
                    std::string(field));
}

bool IsPromptField(json::Value member) {
  for (const std::string_view name : kPromptFields) {
    if (member.KeyEquals(name)) return true;
  }
  return false;
}

}  // namespace tollgate::gateway
