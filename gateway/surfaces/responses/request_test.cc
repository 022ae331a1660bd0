// Every field of docs/design/wire.md 5.1 with its row in 7.3; decisions 17, 18, 27, 33.
#include "gateway/surfaces/responses/request.h"

#include <gtest/gtest.h>

#include <vector>

namespace tollgate::gateway {
namespace {

Result<CanonicalRequest> Parse(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  return ParseResponsesRequest(*document);
}

// A body with this input and these additional members.
std::string Body(const std::string& more = "", const std::string& input = "\"hi\"") {
  return R"({"model":"ns/m","input":)" + input + (more.empty() ? "" : "," + more) + "}";
}

CanonicalRequest Good(const std::string& body) {
  auto request = Parse(body);
  EXPECT_TRUE(request.ok()) << body << " " << (request.ok() ? "" : request.error().ToString());
  if (!request.ok()) return {};
  EXPECT_TRUE(json::Document::ParseView("{" + request->members_json + "}").ok())
      << request->members_json;
  return std::move(*request);
}

// Returns the param of the 400, or "accepted".
std::string Refused(const std::string& body) {
  const auto request = Parse(body);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  EXPECT_FALSE(request.error().message.empty());
  return request.error().param;
}

const std::string kHi = R"("messages":[{"role":"user","content":"hi"}])";

// The engine members without the messages of Body().
std::string Members(const std::string& more) {
  const std::string all = Good(Body(more)).members_json;
  EXPECT_EQ(all.rfind(kHi, 0), 0u) << all;
  return all.size() > kHi.size() ? all.substr(kHi.size() + 1) : "";
}

std::string EchoOf(const CanonicalRequest& request) {
  return std::static_pointer_cast<ResponsesState>(request.state)->echo_json;
}

// Returns a member that the response object echoes.
std::string Echoed(const std::string& more, const std::string& name) {
  const std::string object = "{" + EchoOf(Good(Body(more))) + "}";
  const auto document = json::Document::ParseView(object);
  EXPECT_TRUE(document.ok()) << object;
  const json::Value value = document->root().Find(name);
  return value ? std::string(value.raw()) : "absent";
}

TEST(ResponsesRequest, MinimalRequest) {
  const CanonicalRequest request = Good(Body());
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_EQ(request.members_json, kHi);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.max_tokens_field, "max_output_tokens");
  EXPECT_EQ(request.prompt_field, "input");
  EXPECT_EQ(request.prompt.messages, 1);
  EXPECT_EQ(request.prompt.text_bytes, 2);
  EXPECT_FALSE(request.has_tools);
}

TEST(ResponsesRequest, EchoHasEveryKeyWithItsDefault) {  // docs/design/wire.md 5.2
  EXPECT_EQ(EchoOf(Good(Body())),
            R"("instructions":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,)"
            R"("temperature":1,"top_p":1,"presence_penalty":0,"frequency_penalty":0,)"
            R"("top_logprobs":0,"metadata":{},"max_output_tokens":null,"max_tool_calls":null,)"
            R"("previous_response_id":null,"safety_identifier":null,"prompt_cache_key":null,)"
            R"("reasoning":{"effort":null,"summary":null},"text":{"format":{"type":"text"}},)"
            R"("truncation":"disabled","store":false,"background":false,)"
            R"("service_tier":"default")");
}

TEST(ResponsesRequest, EchoOfTheRequestsValues) {
  const struct {
    const char *sent, *name, *echoed;
  } kCases[] = {
      {R"("instructions":"be \"kind\"\n")", "instructions", R"("be \"kind\"\n")"},
      {R"("parallel_tool_calls":false)", "parallel_tool_calls", "false"},
      {R"("temperature":0.50)", "temperature", "0.50"},
      {R"("top_p":0)", "top_p", "0"},
      {R"("presence_penalty":-1.5)", "presence_penalty", "-1.5"},
      {R"("frequency_penalty":2)", "frequency_penalty", "2"},
      {R"("top_logprobs":5.0)", "top_logprobs", "5"},
      {R"("metadata":{"a":"b"})", "metadata", R"({"a":"b"})"},
      {R"("max_output_tokens":1e3)", "max_output_tokens", "1000"},
      {R"("max_tool_calls":3)", "max_tool_calls", "3"},
      {R"("safety_identifier":"s")", "safety_identifier", R"("s")"},
      {R"("prompt_cache_key":"k")", "prompt_cache_key", R"("k")"},
      {R"("user":"u")", "user", R"("u")"},
      {R"("user":null)", "user", "absent"},
      {R"("reasoning":{"effort":"low","summary":"auto"})", "reasoning",
       R"({"effort":"low","summary":"auto"})"},
      {R"("reasoning":{"generate_summary":"concise"})", "reasoning",
       R"({"effort":null,"summary":"concise"})"},
      {R"("text":{"verbosity":"low"})", "text", R"({"format":{"type":"text"},"verbosity":"low"})"},
      {R"("text":{"format":{"type":"json_object"}})", "text",
       R"({"format":{"type":"json_object"}})"},
      // Members without effect are echoed with their effective values.
      {R"("store":true)", "store", "false"},
      {R"("background":false)", "background", "false"},
      {R"("truncation":"auto")", "truncation", R"("disabled")"},
      {R"("service_tier":"priority")", "service_tier", R"("default")"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Echoed(c.sent, c.name), c.echoed) << c.sent;
}

TEST(ResponsesRequest, MissingMembersNameTheParam) {
  EXPECT_EQ(Refused("[]"), "");
  EXPECT_EQ(Refused("{}"), "model");
  EXPECT_EQ(Refused(R"({"model":5,"input":"x"})"), "model");
  EXPECT_EQ(Refused(R"({"model":"m"})"), "input");
  EXPECT_EQ(Refused(R"({"model":"m","input":null})"), "input");
  EXPECT_EQ(Refused(R"({"model":"m","input":[]})"), "input");
  EXPECT_EQ(Refused(R"({"model":"m","input":{}})"), "input");
  EXPECT_EQ(Refused(R"({"model":"m","input":5})"), "input");
  EXPECT_EQ(Refused(R"({"model":"m","input":[{"type":"web_search_call"}]})"), "input");
}

TEST(ResponsesRequest, StatefulRequestsAreRefusedByName) {  // decisions 27, 33
  EXPECT_EQ(Refused(Body(R"("previous_response_id":"resp_1")")), "previous_response_id");
  const auto refused = Parse(Body(R"("previous_response_id":"resp_1")"));
  EXPECT_NE(refused.error().message.find("previous_response_not_found"), std::string::npos);
  EXPECT_EQ(Refused(Body(R"("conversation":"conv_1")")), "conversation");
  EXPECT_EQ(Refused(Body(R"("conversation":{"id":"conv_1"})")), "conversation");
  EXPECT_EQ(Refused(Body(R"("background":true)")), "background");
  EXPECT_EQ(
      Members(R"("previous_response_id":null,"conversation":null,"background":false,"store":true)"),
      "");
}

TEST(ResponsesRequest, NullMeansAbsentForEveryOptionalField) {  // decision 17
  std::string nulls;
  for (const char* name : {"instructions",
                           "stream",
                           "stream_options",
                           "max_output_tokens",
                           "tools",
                           "tool_choice",
                           "text",
                           "reasoning",
                           "include",
                           "top_logprobs",
                           "metadata",
                           "truncation",
                           "user",
                           "safety_identifier",
                           "prompt_cache_key",
                           "store",
                           "background",
                           "parallel_tool_calls",
                           "temperature",
                           "top_p",
                           "previous_response_id",
                           "conversation",
                           "prompt",
                           "service_tier",
                           "max_tool_calls",
                           "unknown_thing"}) {
    nulls += (nulls.empty() ? "\"" : ",\"") + std::string(name) + "\":null";
  }
  const CanonicalRequest request = Good(Body(nulls));
  EXPECT_EQ(request.members_json, kHi);
  EXPECT_EQ(EchoOf(request), EchoOf(Good(Body())));
}

TEST(ResponsesRequest, MembersForTheEngine) {
  const struct {
    const char *sent, *members;
  } kCases[] = {
      {R"("temperature":0.5,"top_p":1.0,"parallel_tool_calls":false)",
       R"("temperature":0.5,"top_p":1.0,"parallel_tool_calls":false)"},
      // Engine parameters outside the public format are forwarded unchanged (decision 17).
      {R"("x_sim":{"a":[1, 2]},"top_k":7.0,"stop":["z"],"guided_json":{"b":12345678901234567890})",
       R"("x_sim":{"a":[1, 2]},"top_k":7,"stop":["z"],"guided_json":{"b":12345678901234567890})"},
      {R"("reasoning":{"effort":"high","summary":"auto"})", ""},
      {R"("reasoning":{"effort":null})", ""},
      {R"("text":{"format":{"type":"text"},"verbosity":"high"})", ""},
      {R"("text":{"format":{"type":"json_object"}})",
       R"("response_format":{"type":"json_object"})"},
      {R"("text":{"format":{"type":"json_schema","strict":true,"schema":{"type":"object"},"name":"n"}})",
       R"("response_format":{"type":"json_schema","json_schema":{"name":"n",)"
       R"("schema":{"type":"object"},"strict":true}})"},
      {R"("text":{"format":{"type":"json_schema","name":"n","description":"d","schema":{},"strict":null}})",
       R"("response_format":{"type":"json_schema",)"
       R"("json_schema":{"name":"n","description":"d","schema":{}}})"},
      {R"("include":["message.output_text.logprobs"],"top_logprobs":5.0)",
       R"("logprobs":true,"top_logprobs":5)"},
      {R"("include":["reasoning.encrypted_content","message.output_text.logprobs"])",
       R"("logprobs":true)"},
      {R"("include":[],"top_logprobs":5)", ""},
      // Ignored members.
      {R"("store":true,"metadata":{},"user":"u","service_tier":"flex","truncation":"auto",)"
       R"("safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h",)"
       R"("prompt":{"id":"p"},"context_management":[],"client_metadata":{"a":"b"},)"
       R"("max_tool_calls":2,"stream_options":{"include_obfuscation":false},"priority":1)",
       ""},
      // Members that only the surface may set (decision 33).
      {R"("messages":[{"role":"user","content":"evil"}],"max_tokens":9,"max_completion_tokens":9,)"
       R"("response_format":{"type":"x"},"reasoning_effort":"low","logprobs":true,"n":5,)"
       R"("best_of":5,"functions":[],"function_call":"auto")",
       ""},
  };
  for (const auto& c : kCases) EXPECT_EQ(Members(c.sent), c.members) << c.sent;
  EXPECT_EQ(Good(Body(R"("n":5,"best_of":7)")).samples, 1);
  // The router writes reasoning settings for each kind of engine.
  EXPECT_EQ(Good(Body(R"("reasoning":{"effort":"high"})")).reasoning.effort(), "high");
  EXPECT_EQ(
      Good(Body(R"("reasoning":{"effort":null},"reasoning_effort":"low")")).reasoning.effort(), "");
}

TEST(ResponsesRequest, TemplateFieldsCountAsPrompt) {
  const std::string format = R"({"type":"json_object"})";
  EXPECT_EQ(Good(Body(R"("text":{"format":)" + format + "}")).prompt.text_bytes,
            2 + static_cast<int64_t>(format.size()));
  EXPECT_EQ(Good(Body(R"("chat_template_kwargs":{"a":1})")).prompt.text_bytes, 2 + 7);
  EXPECT_EQ(Good(Body(R"("instructions":"four")")).prompt.text_bytes, 2 + 4);
}

TEST(ResponsesRequest, NumbersAreCheckedByName) {  // docs/contract.md, general rule 3
  const struct {
    const char* field;
    std::vector<const char*> good, bad;
  } kCases[] = {
      {"max_output_tokens", {"0", "5", "5.0", "1e3"}, {"-1", "1.5", "\"5\"", "true", "1e400"}},
      {"temperature", {"0", "2", "0.7"}, {"-0.1", "2.1", "\"1\"", "[]"}},
      {"top_p", {"0", "1"}, {"-1", "1.01", "{}"}},
      {"presence_penalty", {"-2", "2"}, {"-2.5", "3"}},
      {"frequency_penalty", {"-2", "2"}, {"-2.5", "3"}},
      {"top_logprobs", {"0", "20"}, {"-1", "21", "1.5", "\"1\""}},
      {"max_tool_calls", {"0", "1"}, {"-1", "0.5"}},
      {"stream", {"true", "false"}, {"1", "\"true\""}},
      {"background", {"false"}, {"1", "\"yes\""}},
      {"store", {"true", "false"}, {"1"}},
      {"parallel_tool_calls", {"true"}, {"1"}},
      {"instructions", {"\"\""}, {"5", "[]"}},
      {"metadata", {"{}"}, {"[]", "\"a\""}},
      {"include", {"[]", "[\"unknown\"]"}, {"\"a\""}},
      {"text",
       {"{}"},
       {"\"text\"", "{\"format\":{\"type\":\"grammar\"}}", "{\"format\":\"text\"}",
        "{\"format\":{\"type\":\"json_schema\",\"name\":\"n\"}}",
        "{\"format\":{\"type\":\"json_schema\",\"schema\":{}}}", "{\"verbosity\":1}"}},
      {"reasoning", {"{}", "{\"effort\":\"xhigh\"}"}, {"\"low\""}},
      {"stream_options", {"{}"}, {"1"}},
      {"user", {"\"u\""}, {"1"}},
  };
  for (const auto& c : kCases) {
    const std::string name = "\"" + std::string(c.field) + "\":";
    for (const char* value : c.good) Good(Body(name + value));
    for (const char* value : c.bad) EXPECT_EQ(Refused(Body(name + value)), c.field) << value;
  }
  EXPECT_EQ(Refused(Body(R"("reasoning":{"effort":"enormous"})")), "reasoning.effort");
  EXPECT_EQ(Good(Body(R"("max_output_tokens":1e3)")).max_tokens, 1000);
}

}  // namespace
}  // namespace tollgate::gateway
