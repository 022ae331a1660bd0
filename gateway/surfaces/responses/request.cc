#include "gateway/surfaces/responses/request.h"

#include "gateway/surfaces/responses/input.h"
#include "gateway/surfaces/responses/tools.h"
#include "gateway/surfaces/shared/body.h"
#include "gateway/surfaces/shared/engine_fields.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldFate;

// Absent from this table and from that of all endpoints (engine_fields.h): forwarded as it came
// (decisions.md 17).
constexpr FieldRule kRules[] = {
    // What the gateway reads itself, or says again.
    {"model", kString, kOwn},
    {"input", kAny, kOwn},
    {"instructions", kString, kOwn},
    {"stream", kBool, kOwn},
    {"stream_options", kObject, kOwn},
    {"max_output_tokens", kInteger, kOwn, 0},
    {"max_tool_calls", kInteger, kOwn, 0},
    {"tools", kArray, kOwn},
    {"tool_choice", kAny, kOwn},
    {"text", kObject, kOwn},
    {"reasoning", kObject, kOwn},
    {"include", kArray, kOwn},
    {"top_logprobs", kInteger, kOwn, 0, 20},
    {"metadata", kObject, kOwn},
    {"truncation", kString, kOwn},
    {"user", kString, kOwn},
    {"safety_identifier", kString, kOwn},
    {"prompt_cache_key", kString, kOwn},
    {"store", kBool, kOwn},
    {"background", kBool, kOwn},
    // Checked, then forwarded.
    {"parallel_tool_calls", kBool, kForward},
    // Of the public format, but without meaning here.
    {"prompt", kAny, kDrop},
    {"context_management", kAny, kDrop},
    {"client_metadata", kAny, kDrop},
    {"moderation", kAny, kDrop},
    {"prompt_cache_options", kAny, kDrop},
    // Members of the engine's own request: here they are made from others, or have no meaning.
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

Result<void> RefuseState(json::Value root) {
  if (!root.Find("previous_response_id").is_null()) {
    // Agents look for the slug, and send everything again (decisions.md 33).
    return BadRequest(
        "previous_response_not_found: no responses are stored here; send the whole conversation "
        "in 'input'.",
        "previous_response_id");
  }
  if (!root.Find("conversation").is_null()) {
    return BadRequest("No conversations are stored here: send the whole conversation in 'input'.",
                      "conversation");
  }
  if (root.Find("background").boolean()) {
    return BadRequest("Responses do not run in the background here.", "background");
  }
  return {};
}

// `text.format` as response_format; empty for plain text.
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
  std::string inside;
  for (const char* member : {"name", "description", "schema", "strict"}) {
    const json::Value value = format.Find(member);
    if (value.is_null()) continue;
    inside += (inside.empty() ? "\"" : ",\"") + std::string(member) + "\":";
    inside += value.raw();
  }
  return R"({"type":"json_schema","json_schema":{)" + inside + "}}";
}

class Reader {
 public:
  explicit Reader(const json::Document& body) : root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> ReadReasoning(json::Value reasoning);
  Result<void> ReadText(json::Value text);
  void ReadLogprobs();
  // Into the request's members and into its measure.
  void AddPromptField(std::string_view name, const std::string& value);
  std::string Echo(const ReadResponsesTools& tools) const;

  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
};

void Reader::AddPromptField(std::string_view name, const std::string& value) {
  if (value.empty()) return;
  request_.prompt.text_bytes += static_cast<int64_t>(value.size());
  writer_.Add(name, value);
}

Result<void> Reader::ReadReasoning(json::Value reasoning) {
  const json::Value effort = reasoning.Find("effort");
  if (effort.is_null()) return {};
  if (auto checked = CheckReasoningEffort(effort, "reasoning.effort"); !checked) return checked;
  writer_.Add("reasoning_effort", effort.raw());
  return {};
}

Result<void> Reader::ReadText(json::Value text) {
  const json::Value verbosity = text.Find("verbosity");
  if (!verbosity.is_null() && !verbosity.is_string()) {
    return BadRequest("'text.verbosity' must be a string.", "text");
  }
  auto format = ReadFormat(text.Find("format"));
  if (!format) return Fail{format.error()};
  AddPromptField("response_format", *format);
  return {};
}

void Reader::ReadLogprobs() {
  for (const json::Value wanted : root_.Find("include")) {
    if (!wanted.StringEquals("message.output_text.logprobs")) continue;
    writer_.Add("logprobs", "true");
    const auto top = root_.Find("top_logprobs").Integer();
    if (top) writer_.Add("top_logprobs", std::to_string(*top));
    return;
  }
}

std::string Reader::Echo(const ReadResponsesTools& tools) const {
  std::string out;
  const auto add = [&out](std::string_view name, std::string_view value) {
    if (!out.empty()) out += ",";
    out += "\"";
    out += name;
    out += "\":";
    out += value;
  };
  const auto say_again = [&](const char* name, std::string_view otherwise) {
    const json::Value value = root_.Find(name);
    add(name, value.is_null() ? otherwise : value.raw());
  };
  const auto integer = [&](const char* name, std::string_view otherwise) {
    const auto value = root_.Find(name).Integer();
    add(name, value ? std::to_string(*value) : std::string(otherwise));
  };
  const auto or_null = [](json::Value value) {
    return std::string(value ? value.raw() : std::string_view("null"));
  };
  say_again("instructions", "null");
  add("tools", tools.echoed_tools);
  add("tool_choice", tools.echoed_choice);
  say_again("parallel_tool_calls", "true");
  say_again("temperature", "1");
  say_again("top_p", "1");
  say_again("presence_penalty", "0");
  say_again("frequency_penalty", "0");
  integer("top_logprobs", "0");
  say_again("metadata", "{}");
  integer("max_output_tokens", "null");
  integer("max_tool_calls", "null");
  add("previous_response_id", "null");
  say_again("safety_identifier", "null");
  say_again("prompt_cache_key", "null");
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

Result<CanonicalRequest> Reader::Read() {
  auto model = ReadModel(root_);
  if (!model) return Fail{model.error()};
  request_.model = std::move(*model);
  const json::Value input = root_.Find("input");
  if (input.is_null()) return BadRequest("Missing required parameter: 'input'.", "input");
  if (auto state = RefuseState(root_); !state) return Fail{state.error()};
  auto conversation = ReadResponsesInput(root_.Find("instructions"), input);
  if (!conversation) return Fail{conversation.error()};
  request_.prompt = conversation->size;
  request_.prompt_field = "input";
  writer_.Add("messages", conversation->messages);
  if (auto read = ReadMembers(root_, kRules, writer_, request_.prompt); !read) {
    return Fail{read.error()};
  }
  request_.stream = root_.Find("stream").boolean();
  request_.max_tokens = root_.Find("max_output_tokens").Integer();
  request_.max_tokens_field = "max_output_tokens";
  auto tools = ReadResponsesToolsOf(root_.Find("tools"), root_.Find("tool_choice"));
  if (!tools) return Fail{tools.error()};
  request_.has_tools = !tools->tools.empty();
  AddPromptField("tools", tools->tools);
  if (!tools->tool_choice.empty()) writer_.Add("tool_choice", tools->tool_choice);
  if (auto read = ReadText(root_.Find("text")); !read) return Fail{read.error()};
  if (auto read = ReadReasoning(root_.Find("reasoning")); !read) return Fail{read.error()};
  ReadLogprobs();
  const auto state = std::make_shared<ResponsesState>();
  state->echo_json = Echo(*tools);
  state->namespaces = std::move(tools->namespaces);
  request_.state = state;
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseResponsesRequest(const json::Document& body) {
  return Reader(body).Read();
}

}  // namespace tollgate::gateway
