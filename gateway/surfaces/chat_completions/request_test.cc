// Every field of wire.md 2.1, and rows H50-H70 of reliability.md that concern the chat body.
#include "gateway/surfaces/chat_completions/request.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

Result<CanonicalRequest> Parse(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ParseChatRequest(*document);
}

// A body with these further members.
std::string Body(const std::string& more = "") {
  return R"({"model":"ns/m","messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}

CanonicalRequest Good(const std::string& body) {
  auto request = Parse(body);
  EXPECT_TRUE(request.ok()) << body << " " << (request.ok() ? "" : request.error().ToString());
  return request.ok() ? std::move(*request) : CanonicalRequest{};
}

// The param of the 400, or what went wrong instead.
std::string Refused(const std::string& body) {
  const auto request = Parse(body);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  EXPECT_FALSE(request.error().message.empty());
  return request.error().param;
}

const std::string kMessages = R"("messages":[{"role":"user","content":"hi"}])";

TEST(ChatRequest, TheSmallestOne) {
  const CanonicalRequest request = Good(Body());
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_EQ(request.members_json, kMessages);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.choices, 1);
  EXPECT_EQ(request.prompt.messages, 1);
  EXPECT_EQ(request.prompt.text_bytes, 2);
}

TEST(ChatRequest, MissingModelOrMessagesNameTheParam) {  // gateway-spec "Cases of 400" 1
  EXPECT_EQ(Refused("[]"), "");
  EXPECT_EQ(Refused("\"x\""), "");
  EXPECT_EQ(Refused("null"), "");
  EXPECT_EQ(Refused("{}"), "model");
  EXPECT_EQ(Refused(R"({"messages":[]})"), "model");
  EXPECT_EQ(Refused(R"({"model":null,"messages":[]})"), "model");
  EXPECT_EQ(Refused(R"({"model":5,"messages":[]})"), "model");
  EXPECT_EQ(Refused(R"({"model":"m"})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","messages":null})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","messages":[]})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","messages":{}})"), "messages");
  EXPECT_EQ(Refused(R"({"model":"m","messages":"hi"})"), "messages");
}

TEST(ChatRequest, WhatTheRouterSetsAndNullsAreLeftOut) {
  const CanonicalRequest request = Good(
      R"({"stream":true, "stream_options":{"include_usage":true,"other":1}, "max_tokens":5,
          "top_p":null, "temperature" : 0.5, "model":"ns/m",)" +
      kMessages +
      R"(,"top_k":20,"chat_template_kwargs":{"enable_thinking":false},"guided_json":{"a":1},"user":"u","workspace_id":"evil"})");
  EXPECT_EQ(request.members_json,
            kMessages + R"(,"temperature" : 0.5,"top_k":20,)"
                        R"("chat_template_kwargs":{"enable_thinking":false},"guided_json":{"a":1},)"
                        R"("workspace_id":"evil")");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_TRUE(json::Document::ParseView("{" + request.members_json + "}").ok());
}

TEST(ChatRequest, NullMeansAbsentForEveryOptionalField) {  // decisions.md 17
  std::string nulls;
  for (const char* name : {"stream",
                           "stream_options",
                           "max_tokens",
                           "max_completion_tokens",
                           "temperature",
                           "top_p",
                           "frequency_penalty",
                           "presence_penalty",
                           "n",
                           "seed",
                           "top_logprobs",
                           "logprobs",
                           "logit_bias",
                           "stop",
                           "tools",
                           "tool_choice",
                           "parallel_tool_calls",
                           "response_format",
                           "reasoning_effort",
                           "user",
                           "metadata",
                           "store",
                           "unknown_thing"}) {
    nulls += (nulls.empty() ? "\"" : ",\"") + std::string(name) + "\":null";
  }
  EXPECT_EQ(Good(Body(nulls)).members_json, kMessages);
}

TEST(ChatRequest, IntegersTakeIntegerValuedFloatsOnly) {  // H56, H57
  for (const char* field : {"max_tokens", "max_completion_tokens"}) {
    const auto with = [&](const std::string& value) {
      return Body("\"" + std::string(field) + "\":" + value);
    };
    for (const char* bad :
         {"-1", "1.5", "\"5\"", "true", "[]", "{}", "1e400", "9223372036854775808"}) {
      EXPECT_EQ(Refused(with(bad)), field) << bad;
    }
    EXPECT_EQ(Good(with("5.0")).max_tokens, 5);
    EXPECT_EQ(Good(with("1e3")).max_tokens, 1000);
    EXPECT_EQ(Good(with("0")).max_tokens, 0);
    EXPECT_EQ(Good(with("5")).max_tokens_field, field);
  }
}

TEST(ChatRequest, MaxCompletionTokensWinsInAnyOrder) {  // decisions.md 18
  for (const char* members : {R"("max_tokens":1,"max_completion_tokens":2)",
                              R"("max_completion_tokens":2,"max_tokens":1)"}) {
    const CanonicalRequest request = Good(Body(members));
    EXPECT_EQ(request.max_tokens, 2);
    EXPECT_EQ(request.max_tokens_field, "max_completion_tokens");
  }
  EXPECT_EQ(Good(Body(R"("max_tokens":1,"max_completion_tokens":null)")).max_tokens, 1);
}

struct FieldCase {
  const char* param;
  std::vector<const char*> good, bad;
};

TEST(ChatRequest, EveryCheckedFieldHasItsRange) {  // H60-H62, H69
  const FieldCase kCases[] = {
      {"temperature", {"0", "2", "0.7", "1e-3"}, {"-0.1", "2.1", "\"1\"", "1e309", "true", "[]"}},
      {"top_p", {"0", "1"}, {"-1", "1.01", "\"x\""}},
      {"frequency_penalty", {"-2", "2"}, {"-2.1", "3", "{}"}},
      {"presence_penalty", {"-2", "2"}, {"-2.1", "3", "\"0\""}},
      {"n", {"1", "128", "2.0"}, {"0", "129", "1000000", "1.5", "\"1\""}},
      {"best_of", {"1"}, {"1000000", "0"}},
      {"seed", {"0", "-5", "9223372036854775807"}, {"1.5", "9223372036854775808", "\"1\""}},
      {"logprobs", {"true", "false"}, {"1", "\"true\"", "1e9"}},
      {"logit_bias", {"{}", R"({"50256":-100})"}, {"[]", R"({"1":"x"})", R"({"1":101})"}},
      {"stop", {"\"x\"", "[]", R"(["a","b"])"}, {"5", "[1]", "{}", "[null]"}},
      {"parallel_tool_calls", {"true"}, {"\"true\"", "1"}},
      {"stream", {"true", "false"}, {"\"true\"", "1", "0"}},
      {"stream_options",
       {"{}", R"({"include_usage":null})"},
       {"[]", "true", R"({"include_usage":1})"}},
      {"response_format",
       {R"({"type":"text"})", R"({"type":"json_object"})",
        R"({"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}})"},
       {"\"json\"", "{}", R"({"type":"json_schema"})", R"({"type":"json_schema","json_schema":{}})",
        R"({"type":"json_schema","json_schema":{"name":"s","schema":[]}})"}},
      {"reasoning_effort", {"\"none\"", "\"low\"", "\"xhigh\""}, {"\"huge\"", "1"}},
      {"top_k", {"-1", "0", "50"}, {"-2", "1.5"}},
      {"min_p", {"0", "0.05"}, {"-0.1", "2"}},
      {"repetition_penalty", {"1.1"}, {"-1", "\"1\""}},
  };
  for (const FieldCase& c : kCases) {
    for (const char* value : c.good) {
      Good(Body("\"" + std::string(c.param) + "\":" + value));
    }
    for (const char* value : c.bad) {
      EXPECT_EQ(Refused(Body("\"" + std::string(c.param) + "\":" + value)), c.param) << value;
    }
  }
}

// Legal in the public format, but one engine or another refuses it or takes it for something else.
TEST(ChatRequest, WhatNotEveryEngineTakesGoesOutInAnotherForm) {
  const auto sent = [](const std::string& member) {
    const std::string members = Good(Body(member)).members_json;
    return members == kMessages ? "" : members.substr(kMessages.size() + 1);
  };
  EXPECT_EQ(sent(R"("top_p":0)"), R"("top_p":1e-6)");
  EXPECT_EQ(sent(R"("top_p":-0.0)"), R"("top_p":1e-6)");
  EXPECT_EQ(sent(R"("top_p" : 0.5)"), R"("top_p" : 0.5)");
  EXPECT_EQ(sent(R"("top_k":0)"), R"("top_k":-1)");
  EXPECT_EQ(sent(R"("stop":"")"), "");
  EXPECT_EQ(sent(R"("stop":["",""])"), "");
  EXPECT_EQ(sent(R"("stop":["","a", "", "b"])"), R"("stop":["a","b"])");
  EXPECT_EQ(sent(R"("stop": ["a", "b"])"), R"("stop": ["a", "b"])");
  EXPECT_EQ(sent(R"("stop":"a")"), R"("stop":"a")");
  EXPECT_EQ(sent(R"("stop":[])"), R"("stop":[])");
  EXPECT_EQ(sent(R"("response_format":{"type":"text"})"), "");
}

TEST(ChatRequest, LogprobsGoTogether) {
  EXPECT_EQ(Refused(Body(R"("top_logprobs":2)")), "top_logprobs");
  EXPECT_EQ(Refused(Body(R"("top_logprobs":2,"logprobs":false)")), "top_logprobs");
  EXPECT_EQ(Refused(Body(R"("top_logprobs":21,"logprobs":true)")), "top_logprobs");
  Good(Body(R"("top_logprobs":2,"logprobs":true)"));
  Good(Body(R"("top_logprobs":0)"));
}

TEST(ChatRequest, CountsOfListsAreBounded) {  // H63, H69
  std::string stops, biases, messages;
  for (int i = 0; i < 2000; ++i) {
    stops += (i ? ",\"" : "\"") + std::to_string(i) + "\"";
    biases += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  }
  for (int i = 0; i < 20'000; ++i)
    messages += i ? R"(,{"role":"user","content":""})" : R"({"role":"user","content":""})";
  EXPECT_EQ(Refused(Body("\"stop\":[" + stops + "]")), "stop");
  EXPECT_EQ(Refused(Body("\"logit_bias\":{" + biases + "}")), "logit_bias");
  EXPECT_EQ(Refused(R"({"model":"m","messages":[)" + messages + "]}"), "messages");
}

TEST(ChatRequest, ChoicesMultiplyTheBound) {
  EXPECT_EQ(Good(Body("\"n\":3")).choices, 3);
  EXPECT_EQ(Good(Body("\"n\":3.0")).members_json, kMessages + ",\"n\":3");
  const CanonicalRequest request = Good(Body(R"("n":2,"best_of":5)"));
  EXPECT_EQ(request.choices, 2);
  EXPECT_EQ(request.samples, 5);
}

std::string Turns(const std::string& messages) {
  return R"({"model":"m","messages":[)" + messages + "]}";
}

TEST(ChatMessages, ShapesThatAreRefused) {  // H63
  for (const char* bad : {
           "5",
           "\"x\"",
           "[]",
           "null",
           "{}",
           R"({"content":"x"})",
           R"({"role":5,"content":"x"})",
           R"({"role":"bot","content":"x"})",
           R"({"role":"user"})",
           R"({"role":"user","content":null})",
           R"({"role":"user","content":5})",
           R"({"role":"user","content":{}})",
           R"({"role":"system","content":null})",
           R"({"role":"user","content":["x"]})",
           R"({"role":"user","content":[{"text":"x"}]})",
           R"({"role":"user","content":[{"image_url":{"url":"http://x"}}]})",
           R"({"role":"user","content":[{"type":"text"}]})",
           R"({"role":"user","content":[{"type":"text","text":5}]})",
           R"({"role":"assistant","tool_calls":{}})",
           R"({"role":"assistant","tool_calls":["x"]})",
           R"({"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]})",
           R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]})",
           R"({"role":"tool","content":"x","tool_call_id":5})",
       }) {
    EXPECT_EQ(Refused(Turns(bad)), "messages") << bad;
  }
}

TEST(ChatMessages, ShapesThatPassUntouched) {
  for (
      const char* good : {
          R"({"role":"user","content":[]})",
          R"({"role":"user","content":[{"type":"text","text":"x"}]})",
          R"({"role":"assistant","content":null})",
          R"({"role":"assistant"})",
          R"({"role":"assistant","content":"x","refusal":null,"audio":null,"annotations":[]})",
          R"({"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]})",
          R"({"role":"tool","content":"x","tool_call_id":"a"})",
          R"({"role":"user","name":"joe","content":"x"})",
      }) {
    EXPECT_EQ(Good(Turns(good)).members_json, "\"messages\":[" + std::string(good) + "]");
  }
}

TEST(ChatMessages, DeveloperBecomesSystem) {
  EXPECT_EQ(Good(Turns(R"({"content":"x","role":"developer"},{"role":"user","content":"y"})"))
                .members_json,
            R"("messages":[{"content":"x","role":"system"},{"role":"user","content":"y"}])");
}

TEST(ChatMessages, HistoryReasoningGoesOutUnderBothNames) {  // wire.md 2.4
  EXPECT_EQ(
      Good(Turns(R"({"role":"assistant","reasoning_content":"r\n","content":"x"})")).members_json,
      R"("messages":[{"role":"assistant","reasoning_content":"r\n","reasoning":"r\n","content":"x"}])");
  EXPECT_EQ(
      Good(Turns(R"({"reasoning":"r","role":"assistant","content":"x"})")).members_json,
      R"("messages":[{"reasoning":"r","reasoning_content":"r","role":"assistant","content":"x"}])");
  EXPECT_EQ(
      Good(Turns(R"({"role":"assistant","reasoning":null,"reasoning_content":"r","content":"x"})"))
          .members_json,
      R"("messages":[{"role":"assistant","reasoning":"r","reasoning_content":"r","content":"x"}])");
  const char* const both =
      R"({"role":"assistant","reasoning":"a","reasoning_content":"b","content":"x"})";
  EXPECT_EQ(Good(Turns(both)).members_json, "\"messages\":[" + std::string(both) + "]");
  const char* const user = R"({"role":"user","reasoning":"a","content":"x"})";
  EXPECT_EQ(Good(Turns(user)).members_json, "\"messages\":[" + std::string(user) + "]");
}

TEST(ChatMessages, TheTypeOfAPartMayBeWrittenWithEscapes) {
  const CanonicalRequest request = Good(
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"t\u0065xt","text":"hello"}]}]})");
  EXPECT_EQ(request.prompt.text_bytes, 5);
  EXPECT_EQ(request.prompt.media_parts, 0);
}

TEST(ChatMessages, MediaPartsAreCounted) {  // H67
  EXPECT_EQ(
      Good(
          Turns(
              R"({"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}]})"))
          .prompt.media_parts,
      1);
  EXPECT_EQ(Good(Turns(R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"))
                .prompt.media_parts,
            1);
  // A text part can not smuggle a picture past the capability check.
  EXPECT_EQ(
      Good(
          Turns(
              R"({"role":"user","content":[{"type":"text","text":"x","image_url":{"url":"http://x"}}]})"))
          .prompt.media_parts,
      1);
}

TEST(ChatMessages, TheSizeBoundsTheText) {
  const CanonicalRequest request = Good(Turns(
      R"({"role":"user","content":"12345"},{"role":"assistant","content":[{"type":"text","text":"678"}],"reasoning":"90"})"));
  EXPECT_EQ(request.prompt.messages, 2);
  EXPECT_GE(request.prompt.text_bytes, 10);
  EXPECT_LE(request.prompt.text_bytes, 20);
}

const std::string kTool =
    R"({"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}})";
const std::string kOther = R"({"type":"function","function":{"name":"g"}})";

TEST(ChatTools, PassThroughAndCount) {
  const CanonicalRequest request =
      Good(Body("\"tools\":[" + kTool + "],\"tool_choice\":\"required\""));
  EXPECT_TRUE(request.has_tools);
  EXPECT_EQ(request.members_json,
            kMessages + ",\"tools\":[" + kTool + "],\"tool_choice\":\"required\"");
  EXPECT_GE(request.prompt.text_bytes, static_cast<int64_t>(kTool.size()));
}

TEST(ChatTools, BadDefinitionsNameTools) {
  for (const char* bad :
       {"{}", "5", "[5]", "[{}]", R"([{"type":"function"}])",
        R"([{"type":"function","function":{}}])", R"([{"type":"function","function":{"name":5}}])",
        R"([{"type":"function","function":{"name":"f","parameters":[]}}])",
        R"([{"type":"function","function":{"name":"f","description":5}}])",
        R"([{"type":"custom","custom":{"name":"f"}}])"}) {
    EXPECT_EQ(Refused(Body("\"tools\":" + std::string(bad))), "tools") << bad;
  }
}

TEST(ChatTools, ChoicesAreCheckedAgainstTheTools) {
  const std::string tools = "\"tools\":[" + kTool + "," + kOther + "],\"tool_choice\":";
  for (const char* good :
       {"\"none\"", "\"auto\"", "\"required\"", R"({"type":"function","function":{"name":"g"}})"}) {
    const std::string members = Good(Body(tools + good)).members_json;
    EXPECT_NE(members.find("\"tool_choice\":" + std::string(good)), std::string::npos) << members;
  }
  for (
      const char* bad :
      {"\"some\"", "5", "[]", "{}", R"({"type":"function"})",
       R"({"type":"function","function":{"name":"h"}})",
       R"({"type":"custom","custom":{"name":"f"}})",
       R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
       R"({"type":"allowed_tools","allowed_tools":{"mode":"x","tools":[{"type":"function","function":{"name":"f"}}]}})"}) {
    EXPECT_EQ(Refused(Body(tools + bad)), "tool_choice") << bad;
  }
  EXPECT_EQ(Refused(Body(R"("tool_choice":"required")")), "tool_choice");
  EXPECT_EQ(Good(Body(R"("tools":[],"tool_choice":"auto")")).members_json, kMessages);
}

TEST(ChatTools, AllowedToolsBecomeAShorterList) {
  const CanonicalRequest request = Good(Body(
      "\"tools\":[" + kTool + "," + kOther +
      R"(],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}})"));
  EXPECT_EQ(request.members_json,
            kMessages + ",\"tools\":[" + kOther + "],\"tool_choice\":\"required\"");
}

TEST(ChatRequest, FieldsThatReachBeyondTheRequestAreDropped) {
  EXPECT_EQ(
      Good(
          Body(
              R"("priority":-10,"input_ids":[1],"prompt_embeds":"x","request_id":"x","kv_transfer_params":{"remote_host":"h"},"custom_logit_processor":"x","n_predict":100000,"id_slot":1,"include_reasoning":false)"))
          .members_json,
      kMessages);
}

TEST(ChatRequest, EscapedKeysAreTheSameKeys) {  // H54
  const CanonicalRequest request =
      Good(R"({"mo\u0064el":"ns/m",)" + kMessages + R"(,"strea\u006d":true,"\u006dax_tokens":7})");
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.members_json, kMessages);
}

}  // namespace
}  // namespace tollgate::gateway
