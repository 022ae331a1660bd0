#include "gateway/surfaces/chat_completions/request.h"

#include <array>

#include "common/base/try.h"
#include "gateway/surfaces/chat_completions/messages.h"
#include "gateway/surfaces/chat_completions/tools.h"
#include "gateway/surfaces/shared/engine_fields.h"
#include "gateway/surfaces/shared/reasoning_controls.h"
#include "gateway/surfaces/shared/request_members.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

// Members that are neither in this table nor in the shared one (engine_fields.h) are forwarded
// unchanged (decision 17).
constexpr FieldRule kChatRules[] = {
    // Read by the surface.
    {"model", kString, kConsume},
    {"messages", kArray, kConsume},
    {"stream", kBool, kConsume},
    {"stream_options", kObject, kConsume},
    {"max_tokens", kInteger, kConsume, 0},
    {"max_completion_tokens", kInteger, kConsume, 0},
    {"tools", kArray, kConsume},
    {"tool_choice", kAny, kConsume},
    {"reasoning", kObject, kConsume},
    {"reasoning_effort", kString, kConsume},
    {"include_reasoning", kBool, kConsume},
    // Checked and forwarded.
    {"n", kInteger, kForward, 1, 128},
    {"best_of", kInteger, kForward, 1, 128},
    {"logprobs", kBool, kForward},
    {"top_logprobs", kInteger, kForward, 0, 20},
    {"parallel_tool_calls", kBool, kForward},
    {"response_format", kObject, kForward},
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

class ChatRequestReader {
 public:
  ChatRequestReader(const json::Document& body, const ParseContext& context)
      : body_(body), context_(context), root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> ReadKnown(const FieldRule& rule, json::Value member);

  const json::Document& body_;
  const ParseContext& context_;
  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
  json::Value tools_, tool_choice_;
};

Result<void> ChatRequestReader::ReadKnown(const FieldRule& rule, json::Value member) {
  if (rule.name == "response_format") return CheckResponseFormat(member);
  if (rule.name == "reasoning_effort") {
    request_.reasoning.set_effort(member.string());
    return CheckReasoningEffort(member, rule.name);
  }
  if (rule.name == "stream") request_.stream = member.boolean();
  if (rule.name == "tools") tools_ = member;
  if (rule.name == "tool_choice") tool_choice_ = member;
  if (rule.name == "n") request_.choices = static_cast<int32_t>(*member.Integer());
  if (rule.name == "n" || rule.name == "best_of") {
    request_.samples = std::max(request_.samples, static_cast<int32_t>(*member.Integer()));
  }
  // max_completion_tokens takes precedence, whatever the order (decision 18).
  if (rule.name == "max_completion_tokens" ||
      (rule.name == "max_tokens" && request_.max_tokens_field != "max_completion_tokens")) {
    request_.max_tokens = member.Integer();
    request_.max_tokens_field = rule.name;
  }
  return {};
}

Result<CanonicalRequest> ChatRequestReader::Read() {
  TRY(auto model, ReadModel(root_));
  request_.model = std::move(model);
  const json::Value messages = root_.Find("messages");
  if (messages.is_null()) return BadRequest("Missing required parameter: 'messages'.", "messages");
  const ModelTraits traits = context_.TraitsOf(request_.model);
  TRY(auto conversation, ReadChatMessages(body_, messages, traits.keeps_system_messages));
  request_.prompt = conversation.size;
  request_.media_hosts = std::move(conversation.media_hosts);
  writer_.Add("messages", conversation.rewritten.empty() ? messages.raw() : conversation.rewritten);
  const auto on_member = [this](const FieldRule& rule, json::Value member) {
    return ReadKnown(rule, member);
  };
  TRY(ReadMembers(root_, kChatRules, writer_, request_, on_member));
  TRY(ReadReasoningControls(root_, traits, request_));
  TRY(const auto usage, ReadIncludeUsage(root_));
  request_.include_usage = usage;
  if (root_.Find("top_logprobs").Integer().value_or(0) > 0 && !root_.Find("logprobs").boolean()) {
    return BadRequest("'top_logprobs' needs 'logprobs' to be true.", "top_logprobs");
  }
  TRY(auto tools, ReadChatTools(tools_, tool_choice_));
  if (!tools.tools.empty()) {
    request_.has_tools = true;
    request_.prompt.text_bytes += static_cast<int64_t>(tools.tools.size());
    writer_.Add("tools", tools.tools);
  }
  if (!tools.tool_choice.empty()) writer_.Add("tool_choice", tools.tool_choice);
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseChatRequest(const json::Document& body, const ParseContext& context) {
  return ChatRequestReader(body, context).Read();
}

}  // namespace tollgate::gateway
