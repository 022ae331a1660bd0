#include "gateway/surfaces/chat_completions/request.h"

#include <array>

#include "gateway/surfaces/chat_completions/messages.h"
#include "gateway/surfaces/chat_completions/tools.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldFate;

// Absent from this table: forwarded as it came (decisions.md 17).
constexpr FieldRule kRules[] = {
    // What the gateway reads itself.
    {"model", kString, kOwn},
    {"messages", kArray, kOwn},
    {"stream", kBool, kOwn},
    {"stream_options", kObject, kOwn},
    {"max_tokens", kInteger, kOwn, 0},
    {"max_completion_tokens", kInteger, kOwn, 0},
    {"tools", kArray, kOwn},
    {"tool_choice", kAny, kOwn},
    // Checked, then forwarded.
    {"temperature", kNumber, kForward, 0, 2},
    {"top_p", kNumber, kForward, 0, 1},
    {"frequency_penalty", kNumber, kForward, -2, 2},
    {"presence_penalty", kNumber, kForward, -2, 2},
    {"n", kInteger, kForward, 1, 128},
    {"best_of", kInteger, kForward, 1, 128},
    {"seed", kInteger, kForward},
    {"logprobs", kBool, kForward},
    {"top_logprobs", kInteger, kForward, 0, 20},
    {"logit_bias", kObject, kForward},
    {"stop", kAny, kForward},
    {"parallel_tool_calls", kBool, kForward},
    {"response_format", kObject, kForward},
    {"reasoning_effort", kString, kForward},
    // Numbers that engines understand beyond the public format.
    {"top_k", kInteger, kForward, -1},
    {"min_p", kNumber, kForward, 0, 1},
    {"repetition_penalty", kNumber, kForward, 0},
    {"length_penalty", kNumber, kForward},
    {"min_tokens", kInteger, kForward, 0},
    // Of the public format, but without meaning here (wire.md 2.1: accept and ignore).
    {"user", kAny, kDrop},
    {"metadata", kAny, kDrop},
    {"store", kAny, kDrop},
    {"service_tier", kAny, kDrop},
    {"verbosity", kAny, kDrop},
    {"prediction", kAny, kDrop},
    {"modalities", kAny, kDrop},
    {"audio", kAny, kDrop},
    {"safety_identifier", kAny, kDrop},
    {"prompt_cache_key", kAny, kDrop},
    {"prompt_cache_retention", kAny, kDrop},
    {"web_search_options", kAny, kDrop},
    // Engine fields that reach beyond the caller's own request: they pick queues, slots, adapters
    // or
    // request ids that tenants share, load code, open connections, or go around max_tokens.
    {"priority", kAny, kDrop},
    {"request_id", kAny, kDrop},
    {"rid", kAny, kDrop},
    {"kv_transfer_params", kAny, kDrop},
    {"bootstrap_host", kAny, kDrop},
    {"bootstrap_port", kAny, kDrop},
    {"bootstrap_room", kAny, kDrop},
    {"data_parallel_rank", kAny, kDrop},
    {"session_params", kAny, kDrop},
    {"custom_logit_processor", kAny, kDrop},
    {"logits_processors", kAny, kDrop},
    {"lora_path", kAny, kDrop},
    {"lora", kAny, kDrop},
    {"adapter_id", kAny, kDrop},
    {"id_slot", kAny, kDrop},
    {"n_predict", kAny, kDrop},
    {"max_new_tokens", kAny, kDrop},
    {"n_probs", kAny, kDrop},
    {"prompt_logprobs", kAny, kDrop},
    {"return_token_ids", kAny, kDrop},
    {"return_hidden_states", kAny, kDrop},
    {"vllm_xargs", kAny, kDrop},
    // Set to false it makes an engine keep its reasoning to itself: tokens that nothing bears
    // witness to, so that honest usage could not be believed (docs/adr/0004).
    {"include_reasoning", kAny, kDrop},
};

// Forwarded fields that a chat template may write into the prompt.
constexpr std::string_view kPromptFields[] = {"documents", "chat_template", "chat_template_kwargs",
                                              "functions", "response_format"};

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxLogitBias = 1024;

Result<void> CheckStop(json::Value stop) {
  if (stop.is_string()) return {};
  if (!stop.is_array())
    return BadRequest("'stop' must be a string or an array of strings.", "stop");
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

Result<void> CheckResponseFormat(json::Value format) {
  const json::Value type = format.Find("type");
  if (!type.is_string()) {
    return BadRequest("'response_format' must have a string 'type'.", "response_format");
  }
  if (!type.StringEquals("json_schema")) return {};
  const json::Value schema = format.Find("json_schema");
  if (!schema.is_object() || !schema.Find("name").is_string()) {
    return BadRequest("'response_format.json_schema' must be an object with a name.",
                      "response_format");
  }
  const json::Value inner = schema.Find("schema");
  if (!inner.is_null() && !inner.is_object()) {
    return BadRequest("'response_format.json_schema.schema' must be an object.", "response_format");
  }
  return {};
}

Result<void> CheckReasoningEffort(json::Value effort) {
  for (const char* known : {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (effort.StringEquals(known)) return {};
  }
  return BadRequest(
      "'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh and max.",
      "reasoning_effort");
}

class Reader {
 public:
  explicit Reader(const json::Document& body)
      : body_(body), root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> ReadMember(json::Value member);
  Result<void> CheckForwarded(const FieldRule& rule, json::Value member);
  void ReadOwn(const FieldRule& rule, json::Value member);
  Result<void> ReadStreamOptions(json::Value options);

  const json::Document& body_;
  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
  json::Value tools_, tool_choice_;
};

Result<void> Reader::CheckForwarded(const FieldRule& rule, json::Value member) {
  if (rule.name == "stop") return CheckStop(member);
  if (rule.name == "logit_bias") return CheckLogitBias(member);
  if (rule.name == "response_format") return CheckResponseFormat(member);
  if (rule.name == "reasoning_effort") return CheckReasoningEffort(member);
  if (rule.name == "n") request_.choices = static_cast<int32_t>(*member.Integer());
  if (rule.name == "n" || rule.name == "best_of") {
    request_.samples = std::max(request_.samples, static_cast<int32_t>(*member.Integer()));
  }
  return {};
}

void Reader::ReadOwn(const FieldRule& rule, json::Value member) {
  if (rule.name == "stream") request_.stream = member.boolean();
  if (rule.name == "tools") tools_ = member;
  if (rule.name == "tool_choice") tool_choice_ = member;
  // max_completion_tokens wins, wherever it stands (decisions.md 18).
  if (rule.name == "max_completion_tokens" ||
      (rule.name == "max_tokens" && request_.max_tokens_field != "max_completion_tokens")) {
    request_.max_tokens = member.Integer();
    request_.max_tokens_field = rule.name;
  }
}

Result<void> Reader::ReadMember(json::Value member) {
  if (member.is_null()) return {};  // absent (decisions.md 17)
  const FieldRule* rule = FindRule(kRules, member);
  if (rule != nullptr) {
    if (rule->fate == kDrop) return {};
    if (auto checked = CheckField(*rule, member); !checked) return checked;
    if (rule->fate == kOwn) {
      ReadOwn(*rule, member);
      return {};
    }
    if (auto checked = CheckForwarded(*rule, member); !checked) return checked;
  }
  for (const std::string_view name : kPromptFields) {
    if (member.KeyEquals(name)) {
      request_.prompt.text_bytes += static_cast<int64_t>(member.raw().size());
    }
  }
  if (rule != nullptr && rule->kind == kInteger) {
    writer_.ForwardInteger(member);
  } else {
    writer_.Forward(member);
  }
  return {};
}

Result<void> Reader::ReadStreamOptions(json::Value options) {
  const json::Value include = options.Find("include_usage");
  if (include.is_null()) return {};
  if (!include.is_bool()) {
    return BadRequest("'stream_options.include_usage' must be true or false.", "stream_options");
  }
  request_.include_usage = request_.stream && include.boolean();
  return {};
}

Result<CanonicalRequest> Reader::Read() {
  if (!root_.is_object()) return BadRequest("The request body must be a JSON object.");
  const json::Value model = root_.Find("model");
  if (model.is_null()) return BadRequest("Missing required parameter: 'model'.", "model");
  if (!model.is_string()) return BadRequest("'model' must be a string.", "model");
  request_.model = model.string();
  const json::Value messages = root_.Find("messages");
  if (messages.is_null()) return BadRequest("Missing required parameter: 'messages'.", "messages");
  auto conversation = ReadChatMessages(body_, messages);
  if (!conversation) return Fail{conversation.error()};
  request_.prompt = conversation->size;
  writer_.Add("messages",
              conversation->rewritten.empty() ? messages.raw() : conversation->rewritten);
  for (const json::Value member : root_) {
    if (auto read = ReadMember(member); !read) return Fail{read.error()};
  }
  if (auto read = ReadStreamOptions(root_.Find("stream_options")); !read) return Fail{read.error()};
  if (root_.Find("top_logprobs").Integer().value_or(0) > 0 && !root_.Find("logprobs").boolean()) {
    return BadRequest("'top_logprobs' needs 'logprobs' to be true.", "top_logprobs");
  }
  auto tools = ReadChatTools(tools_, tool_choice_);
  if (!tools) return Fail{tools.error()};
  if (!tools->tools.empty()) {
    request_.has_tools = true;
    request_.prompt.text_bytes += static_cast<int64_t>(tools->tools.size());
    writer_.Add("tools", tools->tools);
  }
  if (!tools->tool_choice.empty()) writer_.Add("tool_choice", tools->tool_choice);
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseChatRequest(const json::Document& body) {
  return Reader(body).Read();
}

}  // namespace tollgate::gateway
