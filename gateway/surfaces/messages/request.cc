#include "gateway/surfaces/messages/request.h"

#include "common/base/try.h"
#include "gateway/surfaces/messages/tools.h"
#include "gateway/surfaces/messages/turns.h"
#include "gateway/surfaces/shared/engine_fields.h"
#include "gateway/surfaces/shared/reasoning_controls.h"
#include "gateway/surfaces/shared/request_members.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

// Members that are neither in this table nor in the shared one (engine_fields.h) are forwarded
// unchanged.
constexpr FieldRule kMessagesRules[] = {
    // Read by the surface.
    {"model", kString, kConsume},
    {"messages", kArray, kConsume},
    {"system", kAny, kConsume},
    {"max_tokens", kInteger, kConsume, 0},
    {"stream", kBool, kConsume},
    {"tools", kArray, kConsume},
    {"tool_choice", kObject, kConsume},
    {"stop_sequences", kArray, kConsume},
    {"top_k", kInteger, kConsume, 0},
    {"metadata", kObject, kConsume},
    {"thinking", kObject, kConsume},
    {"output_config", kObject, kConsume},
    {"output_format", kObject, kConsume},
    // Checked and forwarded.
    {"temperature", kNumber, kForward, 0, 1},
    {"top_p", kNumber, kForward, 0, 1},
    {"chat_template_kwargs", kObject, kForward},
    // Members of the public format that are accepted and ignored (docs/design/wire.md 6.1).
    {"cache_control", kAny, kDrop},
    {"context_management", kAny, kDrop},
    {"container", kAny, kDrop},
    {"mcp_servers", kAny, kDrop},
    {"service_tier", kAny, kDrop},
    {"inference_geo", kAny, kDrop},
    {"speed", kAny, kDrop},
    {"betas", kAny, kDrop},
    {"anthropic_beta", kAny, kDrop},
    {"anthropic_version", kAny, kDrop},
    {"diagnostics", kAny, kDrop},
    {"fallbacks", kAny, kDrop},
    {"fallback_credit_token", kAny, kDrop},
    {"billing_policy", kAny, kDrop},
    {"compaction", kAny, kDrop},
    {"user_profile_id", kAny, kDrop},
    // Members of the chat format that have another name here, are set by the router, or cause
    // results that a Messages response cannot hold (decision 33).
    {"stop", kAny, kDrop},
    {"max_completion_tokens", kAny, kDrop},
    {"stream_options", kAny, kDrop},
    {"parallel_tool_calls", kAny, kDrop},
    {"functions", kAny, kDrop},
    {"function_call", kAny, kDrop},
    {"response_format", kAny, kDrop},
    {"reasoning_effort", kAny, kDrop},
    {"n", kAny, kDrop},
    {"best_of", kAny, kDrop},
    {"logprobs", kAny, kDrop},
    {"top_logprobs", kAny, kDrop},
};

class MessagesRequestReader {
 public:
  MessagesRequestReader(const json::Document& body, MessagesPurpose purpose,
                        const ParseContext& context)
      : purpose_(purpose), context_(context), root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> ReadRequired();
  Result<void> ReadMember(const FieldRule& rule, json::Value member);
  Result<void> ReadStops(json::Value stops);
  Result<void> ReadMetadata(json::Value metadata);
  Result<void> ReadThinking(json::Value thinking);
  Result<void> ReadOutputConfig(json::Value config);
  Result<void> ReadFormat(json::Value format);
  Result<void> ReadTools();

  const MessagesPurpose purpose_;
  const ParseContext& context_;
  ModelTraits traits_;
  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
};

Result<void> MessagesRequestReader::ReadRequired() {
  TRY(auto model, ReadModel(root_));
  request_.model = std::move(model);
  // A request with a thread has only the new messages. The envelope adds details that make the
  // official client resend the whole conversation.
  if (!root_.Find("thread").is_null()) {
    return BadRequest("Threads are not stored: send all messages, without 'thread'.", "thread");
  }
  const json::Value messages = root_.Find("messages");
  if (messages.is_null()) return BadRequest("Missing required parameter: 'messages'.", "messages");
  if (purpose_ == MessagesPurpose::kGenerate && root_.Find("max_tokens").is_null()) {
    return BadRequest("Missing required parameter: 'max_tokens'.", "max_tokens");
  }
  traits_ = context_.TraitsOf(request_.model);
  TRY(auto turns, ReadMessagesTurns(root_.Find("system"), messages, traits_.keeps_system_messages));
  request_.prompt = turns.size;
  request_.media_hosts = std::move(turns.media_hosts);
  writer_.Add("messages", turns.messages);
  return {};
}

Result<void> MessagesRequestReader::ReadMember(const FieldRule& rule, json::Value member) {
  if (rule.name == "stream") request_.stream = member.boolean();
  // Ignored for counting: clients count to find out what fits.
  if (rule.name == "max_tokens" && purpose_ == MessagesPurpose::kGenerate) {
    request_.max_tokens = member.Integer();
  }
  if (rule.name == "stop_sequences") return ReadStops(member);
  if (rule.name == "metadata") return ReadMetadata(member);
  if (rule.name == "thinking") return ReadThinking(member);
  if (rule.name == "output_config") return ReadOutputConfig(member);
  // The older name. output_config.format takes precedence.
  if (rule.name == "output_format" && root_.Find("output_config").Find("format").is_null()) {
    return ReadFormat(member);
  }
  // 0 means no limit, which some engines express only by omitting the member.
  if (rule.name == "top_k" && *member.Integer() > 0) writer_.ForwardInteger(member);
  return {};
}

Result<void> MessagesRequestReader::ReadStops(json::Value stops) {
  if (stops.size() > kMaxStops) {
    return BadRequest(
        "'stop_sequences' may hold at most " + std::to_string(kMaxStops) + " strings.",
        "stop_sequences");
  }
  if (stops.size() == 0) return {};
  auto state = std::make_shared<MessagesState>();
  for (const json::Value stop : stops) {
    if (!stop.is_string() || stop.raw_string().empty()) {
      return BadRequest("'stop_sequences' must be an array of non-empty strings.",
                        "stop_sequences");
    }
    state->stop_sequences.push_back(stop.string());
  }
  request_.state = std::move(state);
  writer_.Add("stop", stops.raw());
  return {};
}

Result<void> MessagesRequestReader::ReadMetadata(json::Value metadata) {
  const json::Value user = metadata.Find("user_id");
  if (user.is_null()) return {};
  if (!user.is_string()) return BadRequest("'metadata.user_id' must be a string.", "metadata");
  writer_.Add("user", user.raw());
  return {};
}

// Models without a thinking switch are adaptive. No model has a switch for between_tools.
Result<void> MessagesRequestReader::ReadThinking(json::Value thinking) {
  const json::Value type = thinking.Find("type");
  if (!type.is_string()) return BadRequest("'thinking.type' must be a string.", "thinking");
  const json::Value budget = thinking.Find("budget_tokens");
  if (!budget.is_null() && budget.Integer().value_or(-1) < 0) {
    return BadRequest("'thinking.budget_tokens' must be a non-negative integer.", "thinking");
  }
  const bool on = type.StringEquals("enabled");
  const bool off = type.StringEquals("disabled");
  if (!on && !off && !type.StringEquals("adaptive") && !type.StringEquals("between_tools")) {
    return BadRequest("'thinking.type' must be enabled, adaptive, disabled or between_tools.",
                      "thinking");
  }
  if (on || off) SetThinking(root_, on, request_);
  if (on && traits_.bounds_reasoning) request_.reasoning_budget = budget.Integer().value_or(0);
  return {};
}

Result<void> MessagesRequestReader::ReadOutputConfig(json::Value config) {
  const json::Value effort = config.Find("effort");
  if (!effort.is_null()) {
    TRY(CheckReasoningEffort(effort, "output_config.effort"));
    request_.reasoning.set_effort(effort.string());
  }
  const json::Value format = config.Find("format");
  return format.is_null() ? Result<void>() : ReadFormat(format);
}

Result<void> MessagesRequestReader::ReadFormat(json::Value format) {
  const json::Value schema = format.Find("schema");
  if (!format.Find("type").StringEquals("json_schema") || !schema.is_object()) {
    return BadRequest("'output_config.format' must be of type json_schema, with a schema.",
                      "output_config");
  }
  std::string out = R"({"type":"json_schema","json_schema":{"name":"output","schema":)";
  out += schema.raw();
  out += R"(,"strict":true}})";
  request_.prompt.text_bytes += static_cast<int64_t>(out.size());
  writer_.Add("response_format", out);
  return {};
}

Result<void> MessagesRequestReader::ReadTools() {
  TRY(auto tools, ReadMessagesTools(root_.Find("tools"), root_.Find("tool_choice")));
  if (tools.tools.empty()) return {};
  request_.has_tools = true;
  request_.prompt.text_bytes += static_cast<int64_t>(tools.tools.size());
  writer_.Add("tools", tools.tools);
  if (!tools.tool_choice.empty()) writer_.Add("tool_choice", tools.tool_choice);
  if (tools.disable_parallel_calls) writer_.Add("parallel_tool_calls", "false");
  return {};
}

Result<CanonicalRequest> MessagesRequestReader::Read() {
  TRY(ReadRequired());
  const auto on_member = [this](const FieldRule& rule, json::Value member) {
    return rule.action == kConsume ? ReadMember(rule, member) : Result<void>();
  };
  TRY(ReadMembers(root_, kMessagesRules, writer_, request_, on_member));
  TRY(ReadTools());
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseMessagesRequest(const json::Document& body, MessagesPurpose purpose,
                                              const ParseContext& context) {
  return MessagesRequestReader(body, purpose, context).Read();
}

}  // namespace tollgate::gateway
