// Every field of docs/design/wire.md 2.1, and those of the rows H50-H70 of
// docs/design/hostile-inputs.md that apply to the chat body.
#include "gateway/surfaces/chat_completions/request.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/testing/parse.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: request builders

TEST(ChatRequest, MinimalRequest) {
  const CanonicalRequest request = Good(Body());
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_EQ(request.members_json, kMessages);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.choices, 1);
  EXPECT_EQ(request.prompt.messages, 1);
  EXPECT_EQ(request.prompt.text_bytes, 2);
}

TEST(ChatRequest, MissingMembersNameTheParam) {  // docs/contract.md "Cases of 400 bad_request" 1
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

TEST(ChatRequest, MembersSetByTheRouterAndNullsAreOmitted) {
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

TEST(ChatRequest, NullMeansAbsentForEveryOptionalField) {  // decision 17
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

TEST(ChatRequest, IntegersAcceptIntegerValuedFloats) {  // H56, H57
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

TEST(ChatRequest, MaxCompletionTokensWinsInAnyOrder) {  // decision 18
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

TEST(ChatRequest, FieldsAreCheckedAgainstTheirRange) {  // H60-H62, H69
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

// Values that the public format allows but some engines refuse or misinterpret.
TEST(ChatRequest, ValuesThatSomeEnginesRefuseAreNormalized) {
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

TEST(ChatRequest, TopLogprobsNeedLogprobs) {
  EXPECT_EQ(Refused(Body(R"("top_logprobs":2)")), "top_logprobs");
  EXPECT_EQ(Refused(Body(R"("top_logprobs":2,"logprobs":false)")), "top_logprobs");
  EXPECT_EQ(Refused(Body(R"("top_logprobs":21,"logprobs":true)")), "top_logprobs");
  Good(Body(R"("top_logprobs":2,"logprobs":true)"));
  Good(Body(R"("top_logprobs":0)"));
}

TEST(ChatRequest, ListLengthsAreBounded) {  // H63, H69
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

TEST(ChatRequest, ChoicesAndSamples) {
  EXPECT_EQ(Good(Body("\"n\":3")).choices, 3);
  EXPECT_EQ(Good(Body("\"n\":3.0")).members_json, kMessages + ",\"n\":3");
  const CanonicalRequest request = Good(Body(R"("n":2,"best_of":5)"));
  EXPECT_EQ(request.choices, 2);
  EXPECT_EQ(request.samples, 5);
}

TEST(ChatRequest, FieldsWithEffectsBeyondTheRequestAreDropped) {
  EXPECT_EQ(
      Good(
          Body(
              R"("priority":-10,"input_ids":[1],"prompt_embeds":"x","request_id":"x","kv_transfer_params":{"remote_host":"h"},"n_predict":100000,"id_slot":1,"include_reasoning":false)"))
          .members_json,
      kMessages);
}

TEST(ChatRequest, EscapedKeysAreRecognized) {  // H54
  const CanonicalRequest request =
      Good(R"({"mo\u0064el":"ns/m",)" + kMessages + R"(,"strea\u006d":true,"\u006dax_tokens":7})");
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.members_json, kMessages);
}

}  // namespace
}  // namespace tollgate::gateway
