#include "gateway/surfaces/responses/request.h"

#include "common/base/try.h"
#include "gateway/surfaces/responses/input.h"
#include "gateway/surfaces/responses/tools.h"
#include "gateway/surfaces/shared/engine_fields.h"
#include "gateway/surfaces/shared/request_members.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

// Members that are neither in this table nor in the shared one (engine_fields.h) are forwarded
// unchanged (decision 17).
constexpr FieldRule kResponsesRules[] = {
    // Read by the surface, or echoed in the response.
    {"model", kString, kConsume},
    {"input", kAny, kConsume},
    {"instructions", kString, kConsume},
    {"stream", kBool, kConsume},
    {"stream_options", kObject, kConsume},
    {"max_output_tokens", kInteger, kConsume, 0},
    {"max_tool_calls", kInteger, kConsume, 0},
    {"tools", kArray, kConsume},
    {"tool_choice", kAny, kConsume},
    {"text", kObject, kConsume},
    {"reasoning", kObject, kConsume},
    {"include", kArray, kConsume},
    {"top_logprobs", kInteger, kConsume, 0, 20},
    {"metadata", kObject, kConsume},
    {"truncation", kString, kConsume},
    {"user", kString, kConsume},
    {"safety_identifier", kString, kConsume},
    {"prompt_cache_key", kString, kConsume},
    {"store", kBool, kConsume},
    {"background", kBool, kConsume},
    // Checked and forwarded.
    {"parallel_tool_calls", kBool, kForward},
    // Members of the public format that are accepted and ignored.
    {"prompt", kAny, kDrop},
    {"context_management", kAny, kDrop},
    {"client_metadata", kAny, kDrop},
    {"moderation", kAny, kDrop},
    {"prompt_cache_options", kAny, kDrop},
    // Members of the engine request that the surface sets from other members, or that do not apply.
    {"messages", kAny, kDrop},
    {"max_tokens", kAny, kDrop},
    {"max_completion_tokens", kAny, kDrop},
    {"response_format", kAny, kDrop},
    {"reasoning_effort", kAny, kDrop},
    {"logprobs", kAny, kDrop},
    {"n", kAny, kDrop},
    {"best_of", kAny, kDrop},
    {"functions", kAny, kDrop},
    {"function_call", kAny, kDrop},
};

Result<void> RefuseStatefulRequest(json::Value root) {
  if (!root.Find("previous_response_id").is_null()) {
    // Agents match the slug and resend the whole conversation (decision 33).
    return BadRequest(
        "previous_response_not_found: responses are not stored; send the whole conversation "
        "in 'input'.",
        "previous_response_id");
  }
  if (!root.Find("conversation").is_null()) {
    return BadRequest("Conversations are not stored: send the whole conversation in 'input'.",
                      "conversation");
  }
  if (root.Find("background").boolean()) {
    return BadRequest("Background responses are not supported.", "background");
  }
  return {};
}

// Converts `text.format` to response_format; empty for plain text.
Result<std::string> ReadFormat(json::Value format) {
  if (format.is_null()) return std::string();
  const json::Value type = format.Find("type");
  if (type.StringEquals("text")) return std::string();
  if (type.StringEquals("json_object")) return std::string(R"({"type":"json_object"})");
  if (!type.StringEquals("json_schema")) {
    return BadRequest("The type of 'text.format' must be text, json_object or json_schema.",
                      "text");
  }
  if (!format.Find("name").is_string() || !format.Find("schema").is_object()) {
    return BadRequest("A 'text.format' of type json_schema must have a name and a schema.", "text");
  }
  std::string members;
  for (const char* member : {"name", "description", "schema", "strict"}) {
    const json::Value value = format.Find(member);
    if (value.is_null()) continue;
    members += (members.empty() ? "\"" : ",\"") + std::string(member) + "\":";
    members += value.raw();
  }
  return R"({"type":"json_schema","json_schema":{)" + members + "}}";
}

class ResponsesRequestReader {
 public:
  ResponsesRequestReader(const json::Document& body, const ParseContext& context)
      : context_(context), root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> ReadReasoning(json::Value reasoning);
  Result<void> ReadText(json::Value text);
  void ReadLogprobs();
  // Whether `include` contains this value.
  bool Includes(const char* what) const;
  // Adds an engine member that counts as prompt text.
  void AddPromptField(std::string_view name, const std::string& value);
  std::string Echo(const ResponsesTools& tools) const;

  const ParseContext& context_;
  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
};

void ResponsesRequestReader::AddPromptField(std::string_view name, const std::string& value) {
  if (value.empty()) return;
  request_.prompt.text_bytes += static_cast<int64_t>(value.size());
  writer_.Add(name, value);
}

Result<void> ResponsesRequestReader::ReadReasoning(json::Value reasoning) {
  const json::Value effort = reasoning.Find("effort");
  if (effort.is_null()) return {};
  TRY(CheckReasoningEffort(effort, "reasoning.effort"));
  request_.reasoning.set_effort(effort.string());
  return {};
}

Result<void> ResponsesRequestReader::ReadText(json::Value text) {
  const json::Value verbosity = text.Find("verbosity");
  if (!verbosity.is_null() && !verbosity.is_string()) {
    return BadRequest("'text.verbosity' must be a string.", "text");
  }
  TRY(auto format, ReadFormat(text.Find("format")));
  AddPromptField("response_format", format);
  return {};
}

void ResponsesRequestReader::ReadLogprobs() {
  if (!Includes("message.output_text.logprobs")) return;
  writer_.Add("logprobs", "true");
  const auto top = root_.Find("top_logprobs").Integer();
  if (top) writer_.Add("top_logprobs", std::to_string(*top));
}

bool ResponsesRequestReader::Includes(const char* what) const {
  for (const json::Value wanted : root_.Find("include")) {
    if (wanted.StringEquals(what)) return true;
  }
  return false;
}

std::string ResponsesRequestReader::Echo(const ResponsesTools& tools) const {
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    if (!out.empty()) out += ",";
    out += "\"";
    out += name;
    out += "\":";
    out += value;
  };
  const auto echo_or = [&](const char* name, std::string_view fallback) {
    const json::Value value = root_.Find(name);
    add(name, value.is_null() ? fallback : value.raw());
  };
  const auto integer = [&](const char* name, std::string_view fallback) {
    const auto value = root_.Find(name).Integer();
    add(name, value ? std::to_string(*value) : std::string(fallback));
  };
  const auto or_null = [](json::Value value) {
    return std::string(value ? value.raw() : std::string_view("null"));
  };
  echo_or("instructions", "null");
  add("tools", tools.echoed_tools);
  add("tool_choice", tools.echoed_choice);
  echo_or("parallel_tool_calls", "true");
  echo_or("temperature", "1");
  echo_or("top_p", "1");
  echo_or("presence_penalty", "0");
  echo_or("frequency_penalty", "0");
  integer("top_logprobs", "0");
  echo_or("metadata", "{}");
  integer("max_output_tokens", "null");
  integer("max_tool_calls", "null");
  add("previous_response_id", "null");
  echo_or("safety_identifier", "null");
  echo_or("prompt_cache_key", "null");
  const json::Value reasoning = root_.Find("reasoning");
  json::Value summary = reasoning.Find("summary");
  if (summary.is_null()) summary = reasoning.Find("generate_summary");
  add("reasoning", "{\"effort\":" + or_null(reasoning.Find("effort")) +
                       ",\"summary\":" + or_null(summary) + "}");
  const json::Value format = root_.Find("text").Find("format");
  const json::Value verbosity = root_.Find("text").Find("verbosity");
  std::string text = format.is_null() ? R"({"format":{"type":"text"})"
                                      : "{\"format\":" + std::string(format.raw());
  if (!verbosity.is_null()) text += ",\"verbosity\":" + std::string(verbosity.raw());
  add("text", text + "}");
  add("truncation", R"("disabled")");
  add("store", "false");
  add("background", "false");
  add("service_tier", R"("default")");
  if (const json::Value user = root_.Find("user"); !user.is_null()) add("user", user.raw());
  return out;
}

Result<CanonicalRequest> ResponsesRequestReader::Read() {
  TRY(auto model, ReadModel(root_));
  request_.model = std::move(model);
  const json::Value input = root_.Find("input");
  if (input.is_null()) return BadRequest("Missing required parameter: 'input'.", "input");
  TRY(RefuseStatefulRequest(root_));
  const ReasoningSeal seal(context_.reasoning_keys, context_.workspace, request_.model);
  const ResponsesInputOptions options{context_.TraitsOf(request_.model).keeps_system_messages,
                                      &seal, context_.now_s};
  TRY(auto conversation, ReadResponsesInput(root_.Find("instructions"), input, options));
  request_.prompt = conversation.size;
  request_.media_hosts = std::move(conversation.media_hosts);
  request_.prompt_field = "input";
  writer_.Add("messages", conversation.messages);
  TRY(ReadMembers(root_, kResponsesRules, writer_, request_));
  request_.stream = root_.Find("stream").boolean();
  request_.max_tokens = root_.Find("max_output_tokens").Integer();
  request_.max_tokens_field = "max_output_tokens";
  TRY(auto tools, ReadResponsesTools(root_.Find("tools"), root_.Find("tool_choice")));
  request_.has_tools = !tools.tools.empty();
  AddPromptField("tools", tools.tools);
  if (!tools.tool_choice.empty()) writer_.Add("tool_choice", tools.tool_choice);
  TRY(ReadText(root_.Find("text")));
  TRY(ReadReasoning(root_.Find("reasoning")));
  ReadLogprobs();
  const auto state = std::make_shared<ResponsesState>();
  if (Includes("reasoning.encrypted_content")) state->seal_keys = context_.reasoning_keys;
  state->workspace = context_.workspace;
  state->echo_json = Echo(tools);
  state->namespaces = std::move(tools.namespaces);
  request_.state = state;
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseResponsesRequest(const json::Document& body,
                                               const ParseContext& context) {
  return ResponsesRequestReader(body, context).Read();
}

}  // namespace tollgate::gateway
