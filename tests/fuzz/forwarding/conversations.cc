#include "tests/fuzz/forwarding/conversations.h"

#include <string>
#include <utility>
#include <vector>

namespace tollgate::fuzz {
namespace {

using test::Json;

Json Of(std::initializer_list<std::pair<const char*, Json>> members) {
  Json object = Json::Object();
  for (const auto& [name, value] : members) object.Set(name, value);
  return object;
}

Json Text(Random& random) { return Json(RandomString(random).str() + "t"); }

struct ToolUse {
  std::string id;
  Json arguments;
  Json result;
};

// One turn: the user's texts, the assistant's output, its tool calls and their results.
struct Round {
  std::vector<Json> asked;  // the user's texts
  Json reasoning;           // null: none
  Json answer;              // null: none
  std::vector<ToolUse> calls;
};

struct Conversation {
  Json system;  // null: none
  std::vector<Round> rounds;
  Json tools = Json::Array();  // in the plain form
  Json schema;                 // of the answer; null: none
};

Conversation RandomConversation(Random& random) {
  Conversation made;
  if (random.Percent(40)) made.system = Text(random);
  int ids = 0;
  for (size_t left = random.Between(1, 3); left > 0; --left) {
    Round& round = made.rounds.emplace_back();
    for (size_t texts = random.Between(1, 2); texts > 0; --texts)
      round.asked.push_back(Text(random));
    if (random.Percent(40)) round.reasoning = Text(random);
    if (random.Percent(70)) round.answer = Text(random);
    if (random.Percent(50)) {
      for (size_t calls = random.Between(1, 2); calls > 0; --calls) {
        round.calls.push_back(
            {"id\"" + std::to_string(++ids), RandomJsonObject(random), Text(random)});
      }
    }
    // Reasoning alone does not make a message.
    if (round.answer.is_null() && round.calls.empty()) round.answer = Text(random);
  }
  for (size_t i = 0; i < random.Below(3); ++i) {
    Json tool = Of({{"name", Json("tool_" + std::to_string(made.tools.size()))},
                    {"description", random.Percent(50) ? Text(random) : Json()},
                    {"parameters", RandomJsonObject(random)},
                    {"strict", random.Percent(30) ? Json(random.Percent(50)) : Json()}});
    made.tools.Add(std::move(tool));
  }
  if (random.Percent(20)) made.schema = RandomJsonObject(random);
  return made;
}

Json List(const std::vector<Json>& items) {
  Json list = Json::Array();
  for (const Json& item : items) list.Add(item);
  return list;
}

Json MakeMessage(const char* role, Json texts, Json reasoning = {}, Json calls = Json::Array(),
                 Json id = {}) {
  return Of({{"role", Json(role)},
             {"texts", std::move(texts)},
             {"reasoning", std::move(reasoning)},
             {"calls", std::move(calls)},
             {"id", std::move(id)}});
}

// The messages that the engine must get, in the plain form.
Json ExpectedMessages(const Conversation& conversation) {
  Json messages = Json::Array();
  if (!conversation.system.is_null())
    messages.Add(MakeMessage("system", List({conversation.system})));
  for (const Round& round : conversation.rounds) {
    messages.Add(MakeMessage("user", List(round.asked)));
    Json calls = Json::Array();
    for (const ToolUse& call : round.calls) {
      calls.Add(Of({{"id", Json(call.id)}, {"name", "f"}, {"arguments", call.arguments}}));
    }
    messages.Add(MakeMessage("assistant",
                             round.answer.is_null() ? Json::Array() : List({round.answer}),
                             round.reasoning, std::move(calls)));
    for (const ToolUse& call : round.calls) {
      messages.Add(MakeMessage("tool", List({call.result}), {}, Json::Array(), Json(call.id)));
    }
  }
  return messages;
}

class Request {
 public:
  explicit Request(Random& random) : random_(random) {}

  void Add(const std::string& name, Json value) { made_.request.Set(name, std::move(value)); }
  void Forwarded(const std::string& name, const std::string& as, const Json& value) {
    Add(name, value);
    made_.expected.Set(as, value);
  }
  void Number(const char* name, std::initializer_list<const char*> texts) {
    if (random_.Percent(30)) Forwarded(name, name, fuzz::Number(random_.Pick(texts)));
  }
  void Expect(const char* name, Json value) { made_.expected.Set(name, std::move(value)); }
  void Common(const Conversation& conversation, const char* limit) {
    Add("model", RandomString(random_));
    Expect("messages", ExpectedMessages(conversation));
    if (conversation.tools.size() > 0) Expect("tools", conversation.tools);
    Number("temperature", {"0", "0.70", "1.0e0", "1"});
    Number("top_p", {"0.10", "1", "1.0"});
    if (random_.Percent(30)) Add("stream", Json(random_.Percent(50)));
    Add(limit, fuzz::Number("25e1"));
    made_.max_tokens = 250;
  }
  Json& request() { return made_.request; }
  ForwardCase Take() { return std::move(made_); }

 private:
  Random& random_;
  ForwardCase made_ = {.request = Json::Object()};
};

// Members that each surface writes in its own form.
void SetUnlessNull(Json& object, const char* name, const Json& value) {
  if (!value.is_null()) object.Set(name, value);
}

Json TextBlock(Random& random, const Json& text) {
  Json block = Of({{"type", "text"}, {"text", text}});
  if (random.Percent(20)) block.Set("cache_control", RandomValue(random));
  return block;
}

Json PlainMessage(const Json& message) {
  Json texts = Json::Array();
  const Json& content = message["content"];
  if (content.is_string() && !content.str().empty()) texts.Add(content);
  for (const Json& part : content.elements()) texts.Add(part["text"]);
  Json calls = Json::Array();
  for (const Json& call : message["tool_calls"].elements()) {
    const Json& function = call["function"];
    calls.Add(Of({{"id", call["id"]},
                  {"name", function["name"]},
                  {"arguments", Json::Parse(function["arguments"].str()).value_or(Json())}}));
  }
  // An engine reads one of the two names (docs/design/wire.md 2.4).
  const bool both = message["reasoning"] == message["reasoning_content"];
  return MakeMessage(message["role"].str().c_str(), std::move(texts),
                     both ? message["reasoning"] : Json("under one name only"), std::move(calls),
                     message["tool_call_id"]);
}

}  // namespace

Json Plain(const Json& engine_body) {
  Json plain = engine_body;
  Json messages = Json::Array();
  for (const Json& message : engine_body["messages"].elements())
    messages.Add(PlainMessage(message));
  plain.Set("messages", std::move(messages));
  if (!engine_body.has("tools")) return plain;
  Json tools = Json::Array();
  for (const Json& tool : engine_body["tools"].elements()) {
    const Json& function = tool["function"];
    tools.Add(Of({{"name", function["name"]},
                  {"description", function["description"]},
                  {"parameters", function["parameters"]},
                  {"strict", function["strict"]}}));
  }
  plain.Set("tools", std::move(tools));
  return plain;
}

ForwardCase RandomMessagesRequest(Random& random) {
  const Conversation conversation = RandomConversation(random);
  Request request(random);
  request.Common(conversation, "max_tokens");
  if (!conversation.system.is_null()) {
    request.Add("system", random.Percent(50) ? conversation.system
                                             : List({TextBlock(random, conversation.system)}));
  }
  Json messages = Json::Array();
  Json turn = Json::Array();  // the user's; starts with results
  for (const Round& round : conversation.rounds) {
    for (const Json& text : round.asked) turn.Add(TextBlock(random, text));
    messages.Add(Of({{"role", "user"}, {"content", std::exchange(turn, Json::Array())}}));
    Json blocks = Json::Array();
    if (!round.reasoning.is_null()) {
      blocks.Add(Of({{"type", "thinking"}, {"thinking", round.reasoning}, {"signature", "s"}}));
    }
    if (!round.answer.is_null()) blocks.Add(TextBlock(random, round.answer));
    for (const ToolUse& call : round.calls) {
      blocks.Add(Of(
          {{"type", "tool_use"}, {"id", Json(call.id)}, {"name", "f"}, {"input", call.arguments}}));
      turn.Add(Of({{"type", "tool_result"},
                   {"tool_use_id", Json(call.id)},
                   {"content",
                    random.Percent(50) ? call.result : List({TextBlock(random, call.result)})}}));
    }
    messages.Add(Of({{"role", "assistant"}, {"content", std::move(blocks)}}));
  }
  if (turn.size() > 0) messages.Add(Of({{"role", "user"}, {"content", std::move(turn)}}));
  request.Add("messages", std::move(messages));
  Json tools = Json::Array();
  for (const Json& tool : conversation.tools.elements()) {
    Json own = Of({{"name", tool["name"]}, {"input_schema", tool["parameters"]}});
    SetUnlessNull(own, "description", tool["description"]);
    SetUnlessNull(own, "strict", tool["strict"]);
    if (random.Percent(30)) own.Set("cache_control", RandomValue(random));
    tools.Add(std::move(own));
  }
  if (tools.size() > 0) request.Add("tools", std::move(tools));
  if (random.Percent(20)) request.Forwarded("stop_sequences", "stop", List({Text(random)}));
  if (random.Percent(20)) {
    const Json user = RandomString(random);
    request.Add("metadata", Of({{"user_id", user}}));
    request.Expect("user", user);
  }
  if (!conversation.schema.is_null()) {
    request.Add("output_config",
                Of({{"format", Of({{"type", "json_schema"}, {"schema", conversation.schema}})}}));
    request.Expect(
        "response_format",
        Of({{"type", "json_schema"},
            {"json_schema",
             Of({{"name", "output"}, {"schema", conversation.schema}, {"strict", true}})}}));
  }
  return request.Take();
}

ForwardCase RandomResponsesRequest(Random& random) {
  const Conversation conversation = RandomConversation(random);
  Request request(random);
  request.Common(conversation, "max_output_tokens");
  SetUnlessNull(request.request(), "instructions", conversation.system);
  Json input = Json::Array();
  for (const Round& round : conversation.rounds) {
    Json parts = Json::Array();
    for (const Json& text : round.asked) parts.Add(Of({{"type", "input_text"}, {"text", text}}));
    Json message = Of({{"role", "user"}, {"content", std::move(parts)}});
    if (random.Percent(50)) message.Set("type", "message");
    input.Add(std::move(message));
    if (!round.reasoning.is_null()) {
      input.Add(
          Of({{"type", "reasoning"},
              {"id", "rs_1"},
              {"summary", List({Of({{"type", "summary_text"}, {"text", round.reasoning}})})}}));
    }
    if (!round.answer.is_null()) {
      input.Add(Of({{"type", "message"},
                    {"role", "assistant"},
                    {"content", List({Of({{"type", "output_text"},
                                          {"text", round.answer},
                                          {"annotations", Json::Array()}})})}}));
    }
    std::vector<Json> outputs;
    for (const ToolUse& call : round.calls) {
      input.Add(Of({{"type", "function_call"},
                    {"call_id", Json(call.id)},
                    {"name", "f"},
                    {"arguments", Json(call.arguments.Dump())}}));
      outputs.push_back(Of(
          {{"type", "function_call_output"}, {"call_id", Json(call.id)}, {"output", call.result}}));
    }
    for (Json& output : outputs) input.Add(std::move(output));
  }
  request.Add("input", std::move(input));
  Json tools = Json::Array();
  for (const Json& tool : conversation.tools.elements()) {
    Json own =
        Of({{"type", "function"}, {"name", tool["name"]}, {"parameters", tool["parameters"]}});
    SetUnlessNull(own, "description", tool["description"]);
    SetUnlessNull(own, "strict", tool["strict"]);
    tools.Add(std::move(own));
  }
  if (tools.size() > 0) request.Add("tools", std::move(tools));
  if (!conversation.schema.is_null()) {
    const Json format = Of({{"name", "s"}, {"schema", conversation.schema}, {"strict", true}});
    Json own = Of({{"type", "json_schema"}});
    for (const Json::Member& member : format.members()) own.Set(member.first, member.second);
    request.Add("text", Of({{"format", std::move(own)}}));
    request.Expect("response_format", Of({{"type", "json_schema"}, {"json_schema", format}}));
  }
  return request.Take();
}

}  // namespace tollgate::fuzz
