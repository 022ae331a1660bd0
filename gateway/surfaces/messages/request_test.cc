// Every field of docs/design/wire.md 6.1 except messages, system and tools (turns_test.cc,
// tools_test.cc).
#include "gateway/surfaces/messages/request.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/messages/messages_surface.h"

namespace tollgate::gateway {
namespace {

Result<CanonicalRequest> Parse(const std::string& body, const Surface& surface) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return surface.ParseRequest(*document);
}

// A valid body with these additional members.
std::string Body(const std::string& more = "") {
  return R"({"model":"ns/m","max_tokens":9,"messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}
const std::string kMessages = R"("messages":[{"role":"user","content":"hi"}])";

CanonicalRequest Good(const std::string& body, const Surface& surface = MessagesSurface()) {
  auto request = Parse(body, surface);
  EXPECT_TRUE(request.ok()) << body << " " << (request.ok() ? "" : request.error().ToString());
  if (!request.ok()) return {};
  EXPECT_TRUE(json::Document::ParseView("{" + request->members_json + "}").ok())
      << request->members_json;
  return std::move(*request);
}

// The engine members without the conversation.
std::string Sent(const std::string& more) {
  const std::string members = Good(Body(more)).members_json;
  EXPECT_EQ(members.rfind(kMessages, 0), 0u) << members;
  return members == kMessages ? "" : members.substr(kMessages.size() + 1);
}

// Returns the param of the 400, or "accepted". The Messages envelope names the field in the
// message.
std::string Refused(const std::string& body, const Surface& surface = MessagesSurface()) {
  const auto request = Parse(body, surface);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  if (!request.error().param.empty()) {
    EXPECT_NE(request.error().message.find(request.error().param), std::string::npos)
        << request.error().message;
  }
  return request.error().param;
}

TEST(MessagesRequest, MinimalRequest) {
  const CanonicalRequest request = Good(Body());
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_EQ(request.members_json, kMessages);
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.max_tokens_field, "max_tokens");
  EXPECT_EQ(request.choices, 1);
  EXPECT_EQ(request.samples, 1);
  EXPECT_EQ(request.prompt.messages, 1);
  EXPECT_EQ(request.prompt.text_bytes, 2);
  EXPECT_EQ(request.prompt_field, "messages");
  EXPECT_FALSE(request.has_tools);
  EXPECT_EQ(request.kind, inference::v1::REQUEST_KIND_CHAT);
}

TEST(MessagesRequest, RequiredMembers) {
  EXPECT_EQ(Refused("[]"), "");
  EXPECT_EQ(Refused("{}"), "model");
  EXPECT_EQ(Refused(R"({"model":null})"), "model");
  EXPECT_EQ(Refused(R"({"model":5,"max_tokens":1,"messages":[]})"), "model");
  EXPECT_EQ(Refused(R"({"model":"m","max_tokens":1})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","max_tokens":1,"messages":null})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m",)" + kMessages + "}"), "max_tokens");
  EXPECT_EQ(Refused(R"({"model":"m","max_tokens":null,)" + kMessages + "}"), "max_tokens");
}

TEST(MessagesRequest, MaxTokensIsANonNegativeInteger) {  // docs/contract.md, general rule 3
  const auto with = [](const std::string& value) {
    return R"({"model":"m","max_tokens":)" + value + "," + kMessages + "}";
  };
  EXPECT_EQ(Good(with("0")).max_tokens, 0);
  EXPECT_EQ(Good(with("5.0")).max_tokens, 5);
  EXPECT_EQ(Good(with("1e3")).max_tokens, 1000);
  for (const char* bad : {"-1", "1.5", "\"5\"", "true", "[]", "1e400", "99999999999999999999"}) {
    EXPECT_EQ(Refused(with(bad)), "max_tokens") << bad;
  }
}

TEST(MessagesRequest, CountingNeedsNoMaxTokens) {  // docs/design/wire.md 6.4
  const std::string body = R"({"model":"m",)" + kMessages + R"(,"system":"s"})";
  const CanonicalRequest request = Good(body, CountTokensSurface());
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.members_json,
            R"("messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}])");
  EXPECT_EQ(Refused(R"({"model":"m"})", CountTokensSurface()), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","max_tokens":-1,)" + kMessages + "}", CountTokensSurface()),
            "max_tokens");
  // Nothing is generated, so max_tokens is ignored.
  for (const char* size : {"0", "999999999"}) {
    const std::string sent = R"({"model":"m","max_tokens":)" + std::string(size) + "," + kMessages;
    EXPECT_FALSE(Good(sent + "}", CountTokensSurface()).max_tokens.has_value()) << size;
  }
}

TEST(MessagesRequest, NullMeansAbsentForEveryOptionalField) {  // decision 17
  std::string nulls;
  for (const char* name : {"system",        "stream",         "tools",
                           "tool_choice",   "stop_sequences", "temperature",
                           "top_p",         "top_k",          "metadata",
                           "thinking",      "output_config",  "output_format",
                           "cache_control", "container",      "context_management",
                           "mcp_servers",   "service_tier",   "chat_template_kwargs",
                           "thread",        "never_heard_of"}) {
    nulls += (nulls.empty() ? "\"" : ",\"") + std::string(name) + "\":null";
  }
  EXPECT_EQ(Sent(nulls), "");
  EXPECT_EQ(Sent(R"("metadata":{"user_id":null},"output_config":{"effort":null,"format":null},)"
                 R"("thinking":{"type":"adaptive","budget_tokens":null})"),
            "");
}

// A member of the request, and the engine members that it becomes.
struct Row {
  const char* member;
  const char* sent;
};
class MessagesMember : public ::testing::TestWithParam<Row> {};
TEST_P(MessagesMember, IsTranslatedForTheEngine) {
  EXPECT_EQ(Sent(GetParam().member), GetParam().sent);
}
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesMember,
    ::testing::Values(
        Row{R"("stream":true)", ""}, Row{R"("temperature":0)", R"("temperature":0)"},
        Row{R"("temperature":1.0)", R"("temperature":1.0)"},
        Row{R"("top_p":0.95)", R"("top_p":0.95)"}, Row{R"("top_k":40)", R"("top_k":40)"},
        Row{R"("top_k":4e1)", R"("top_k":40)"}, Row{R"("top_k":0)", ""},
        Row{R"("stop_sequences":[])", ""},
        Row{R"("stop_sequences":["a\n", "b"])", R"("stop":["a\n", "b"])"},
        Row{R"("metadata":{"user_id":"u-1","other":2})", R"("user":"u-1")"},
        Row{R"("metadata":{})", ""},
        // Reasoning settings are written by the router for each kind of engine.
        Row{R"("thinking":{"type":"enabled","budget_tokens":2048})", ""},
        Row{R"("thinking":{"type":"disabled"})", ""},
        Row{R"("thinking":{"type":"adaptive","display":"summarized"})", ""},
        Row{R"("thinking":{"type":"between_tools"})", ""},
        Row{R"("thinking":{"type":"disabled"},"chat_template_kwargs":{"x":1})",
            R"("chat_template_kwargs":{"x":1})"},
        Row{R"("output_config":{"effort":"high"})", ""},
        Row{R"("output_config":{"task_budget":{"type":"tokens","total":5}})", ""},
        Row{R"("output_config":{"format":{"type":"json_schema","schema":{"a": 12345678901234567890}}})",
            R"("response_format":{"type":"json_schema","json_schema":{"name":"output","schema":{"a": 12345678901234567890},"strict":true}})"},
        Row{R"("output_format":{"type":"json_schema","schema":{}})",
            R"("response_format":{"type":"json_schema","json_schema":{"name":"output","schema":{},"strict":true}})"},
        Row{R"("output_format":{"type":"json_schema","schema":{"old":1}},"output_config":{"format":{"type":"json_schema","schema":{}}})",
            R"("response_format":{"type":"json_schema","json_schema":{"name":"output","schema":{},"strict":true}})"},
        // Members of the public format that are ignored.
        Row{R"("cache_control":{"type":"ephemeral"},"container":"c","service_tier":"auto")", ""},
        Row{R"("context_management":{"edits":[]},"mcp_servers":[],"betas":["x"])", ""},
        Row{R"("compaction":{},"billing_policy":{},"fallback_credit_token":"t","fallbacks":[])",
            ""},
        // Members of no public format are forwarded.
        Row{R"("x_sim":{"tokens":5},"min_p":0.1,"seed":7,"guided_json":{"b":1,"a":2})",
            R"("x_sim":{"tokens":5},"min_p":0.1,"seed":7,"guided_json":{"b":1,"a":2})"},
        Row{R"("seed":5.0)", R"("seed":5)"},
        // These are not forwarded: they affect more than the request, break the response, or would
        // be set twice.
        Row{R"("priority":-1,"rid":"x","max_new_tokens":99,"lora_path":"/x")", ""},
        Row{R"("n":5,"best_of":9,"logprobs":true,"top_logprobs":5)", ""},
        Row{R"("max_completion_tokens":5,"stream_options":{"include_usage":false})", ""},
        Row{R"("stop":["x"],"user":"u","reasoning_effort":"low","response_format":{"type":"text"})",
            ""},
        Row{R"("parallel_tool_calls":true,"functions":[],"function_call":"none")", ""}));

TEST(MessagesRequest, SaysHowMuchToReason) {  // docs/design/wire.md 7.1
  const auto said = [](const std::string& member) {
    return Good(R"({"model":"m","max_tokens":1,)" + kMessages + "," + member + "}").reasoning;
  };
  EXPECT_EQ(said(R"("thinking":{"type":"enabled","budget_tokens":2048})").thinking(),
            inference::v1::REASONING_SWITCH_ON);
  const auto off = said(R"("thinking":{"type":"disabled"})");
  EXPECT_EQ(off.thinking(), inference::v1::REASONING_SWITCH_OFF);
  EXPECT_FALSE(off.own_template_arguments());
  EXPECT_TRUE(said(R"("thinking":{"type":"disabled"},"chat_template_kwargs":{"x":1})")
                  .own_template_arguments());
  for (const char* type : {"adaptive", "between_tools"}) {
    EXPECT_EQ(said(R"("thinking":{"type":")" + std::string(type) + "\"}").ByteSizeLong(), 0u);
  }
  EXPECT_EQ(said(R"("output_config":{"effort":"high"})").effort(), "high");
  EXPECT_EQ(said(R"("reasoning_effort":"low")").effort(), "");
}

class MessagesRefusal : public ::testing::TestWithParam<Row> {};
TEST_P(MessagesRefusal, NamesTheField) {
  EXPECT_EQ(Refused(Body(GetParam().member)), GetParam().sent) << GetParam().member;
}
INSTANTIATE_TEST_SUITE_P(
    Rows, MessagesRefusal,
    ::testing::Values(
        Row{R"("stream":"yes")", "stream"}, Row{R"("stream":1)", "stream"},
        Row{R"("temperature":1.01)", "temperature"}, Row{R"("temperature":-0.1)", "temperature"},
        Row{R"("temperature":"hot")", "temperature"}, Row{R"("temperature":1e400)", "temperature"},
        Row{R"("top_p":1.5)", "top_p"}, Row{R"("top_p":-1)", "top_p"},
        Row{R"("top_k":-1)", "top_k"}, Row{R"("top_k":1.5)", "top_k"},
        Row{R"("top_k":"40")", "top_k"}, Row{R"("stop_sequences":"x")", "stop_sequences"},
        Row{R"("stop_sequences":[1])", "stop_sequences"},
        Row{R"("stop_sequences":[null])", "stop_sequences"},
        Row{R"("stop_sequences":[""])", "stop_sequences"}, Row{R"("metadata":"x")", "metadata"},
        Row{R"("metadata":{"user_id":5})", "metadata"}, Row{R"("thinking":true)", "thinking"},
        Row{R"("thinking":{})", "thinking"}, Row{R"("thinking":{"type":"deep"})", "thinking"},
        Row{R"("thinking":{"type":"enabled","budget_tokens":-5})", "thinking"},
        Row{R"("thinking":{"type":"enabled","budget_tokens":1.5})", "thinking"},
        Row{R"("output_config":"high")", "output_config"},
        Row{R"("output_config":{"effort":"extreme"})", "output_config.effort"},
        Row{R"("output_config":{"effort":3})", "output_config.effort"},
        Row{R"("output_config":{"format":{"type":"text"}})", "output_config"},
        Row{R"("output_config":{"format":{"type":"json_schema"}})", "output_config"},
        Row{R"("output_format":5)", "output_format"}, Row{R"("tools":{})", "tools"},
        Row{R"("tool_choice":"auto")", "tool_choice"}, Row{R"("system":5)", "system"},
        Row{R"("thread":{"type":"create"})", "thread"},
        Row{R"("thread":{"type":"continue","previous_message_id":"msg_1"})", "thread"},
        Row{R"("min_p":2)", "min_p"}, Row{R"("seed":1.5)", "seed"},
        Row{R"("chat_template_kwargs":5)", "chat_template_kwargs"}));

TEST(MessagesRequest, TooManyStopSequences) {
  std::string stops = R"("a")";
  for (int i = 0; i < 64; ++i) stops += R"(,"a")";
  EXPECT_EQ(Refused(Body(R"("stop_sequences":[)" + stops + "]")), "stop_sequences");
}

TEST(MessagesRequest, StopSequencesAreStoredDecoded) {
  const CanonicalRequest request = Good(Body(R"("stop_sequences":["a\nb","\u00e9"])"));
  ASSERT_NE(request.state, nullptr);
  EXPECT_EQ(static_cast<const MessagesState&>(*request.state).stop_sequences,
            (std::vector<std::string>{"a\nb", "é"}));
}

TEST(MessagesRequest, CacheControlIsIgnored) {  // docs/contract.md "Prompt caching"
  const std::string mark = R"("cache_control":{"type":"ephemeral","ttl":"1h"})";
  const auto body = [&](const std::string& m) {
    const std::string c = m.empty() ? "" : "," + m;
    return R"({"model":"m","max_tokens":1)" + c + R"(,"system":[{"type":"text","text":"s")" + c +
           R"(}],"tools":[{"name":"f","input_schema":{})" + c +
           R"(}],"messages":[{"role":"user","content":[{"type":"text","text":"q")" + c +
           R"(}]},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{})" +
           c + R"(}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t")" + c +
           R"(,"content":[{"type":"text","text":"r")" + c + "}]}]}]}";
  };
  EXPECT_EQ(Good(body(mark)).members_json, Good(body("")).members_json);
  EXPECT_EQ(Good(body(R"("cache_control":"nonsense")")).members_json, Good(body("")).members_json);
}

TEST(MessagesRequest, ToolsAndToolChoice) {
  const CanonicalRequest request =
      Good(Body(R"("tools":[{"name":"f","input_schema":{"type":"object"}}],)"
                R"("tool_choice":{"type":"any","disable_parallel_tool_use":true})"));
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  EXPECT_EQ(request.members_json, kMessages + R"(,"tools":)" + tools +
                                      R"(,"tool_choice":"required","parallel_tool_calls":false)");
  EXPECT_TRUE(request.has_tools);
  EXPECT_EQ(request.prompt.text_bytes, 2 + static_cast<int64_t>(tools.size()));
}

TEST(MessagesRequest, TemplateFieldsCountAsPrompt) {
  EXPECT_EQ(Good(Body(R"("chat_template_kwargs":{"x":"y"})")).prompt.text_bytes, 2 + 9);
  EXPECT_GT(Good(Body(R"("output_config":{"format":{"type":"json_schema","schema":{"a":1}}})"))
                .prompt.text_bytes,
            9);
}

}  // namespace
}  // namespace tollgate::gateway
