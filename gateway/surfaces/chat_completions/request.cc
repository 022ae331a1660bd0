#include "gateway/surfaces/chat_completions/request.h"

#include <array>

#include "gateway/surfaces/chat_completions/messages.h"
#include "gateway/surfaces/chat_completions/tools.h"
#include "gateway/surfaces/shared/engine_fields.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldFate;

// Absent from this table and from that of all endpoints (engine_fields.h): forwarded as it came
// (decisions.md 17).
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
    {"n", kInteger, kForward, 1, 128},
    {"best_of", kInteger, kForward, 1, 128},
    {"logprobs", kBool, kForward},
    {"top_logprobs", kInteger, kForward, 0, 20},
    {"parallel_tool_calls", kBool, kForward},
    {"response_format", kObject, kForward},
    {"reasoning_effort", kString, kForward},
    // Of the public format, but without meaning here (wire.md 2.1: accept and ignore).
    {"verbosity", kAny, kDrop},
    {"prediction", kAny, kDrop},
    {"modalities", kAny, kDrop},
    {"audio", kAny, kDrop},
    {"web_search_options", kAny, kDrop},
};

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
  if (rule.name == "response_format") return CheckResponseFormat(member);
  if (rule.name == "reasoning_effort") return CheckReasoningEffort(member, rule.name);
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
  if (rule == nullptr) rule = FindEngineField(member);
  if (rule != nullptr) {
    if (rule->fate == kDrop) return {};
    if (auto checked = CheckEngineField(*rule, member); !checked) return checked;
    if (rule->fate == kOwn) {
      ReadOwn(*rule, member);
      return {};
    }
    if (auto checked = CheckForwarded(*rule, member); !checked) return checked;
  }
  if (IsPromptField(member)) {
    request_.prompt.text_bytes += static_cast<int64_t>(member.raw().size());
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
