// Requests of POST /v1/completions and the resulting engine members. See docs/design/wire.md 3,
// decisions 17 to 19, 30.
#include <gtest/gtest.h>

#include "gateway/surfaces/completions/request.h"

namespace tollgate::gateway {
namespace {

std::string Body(const std::string& members, const std::string& prompt = "\"Once\"") {
  return R"({"model":"ns/m","prompt":)" + prompt + (members.empty() ? "" : "," + members) + "}";
}

CanonicalRequest Good(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  auto request = ParseCompletionRequest(*document);
  EXPECT_TRUE(request.ok()) << body << (request.ok() ? "" : request.error().ToString());
  return request.ok() ? std::move(*request) : CanonicalRequest();
}

// Returns the param of the 400, or "accepted".
std::string Refused(const std::string& body) {
  const auto document = json::Document::ParseView(body);
  EXPECT_TRUE(document.ok()) << body;
  const auto request = ParseCompletionRequest(*document);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.error().id, ErrorId::kBadRequest);
  return request.error().param;
}

TEST(CompletionRequest, MembersForTheEngine) {
  const CanonicalRequest request = Good(
      R"({"stream":true,"stream_options":{"include_usage":true},"model":"ns/m","max_tokens":7,)"
      R"("prompt": "Once\n","echo":true,"logprobs":2.0,"suffix":"end","temperature":0.5,)"
      R"("stop":["a"],"seed":1,"logit_bias":{"5":-1},"top_k":3,"mirostat":{"x":1},"user":"u",)"
      R"("top_p":null,"max_completion_tokens":9,"messages":[],"prompt_embeds":"x","priority":1})");
  EXPECT_EQ(request.kind, inference::v1::REQUEST_KIND_COMPLETION);
  EXPECT_EQ(request.model, "ns/m");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.members_json,
            R"("prompt":"Once\n","echo":true,"logprobs":2,"suffix":"end","temperature":0.5,)"
            R"("stop":["a"],"seed":1,"logit_bias":{"5":-1},"top_k":3,"mirostat":{"x":1})");
  EXPECT_EQ(request.prompt.text_bytes, 6 + 3);
}

TEST(CompletionRequest, MaxTokensDefaultsToSixteen) {
  EXPECT_EQ(Good(Body("")).max_tokens, 16);
  EXPECT_EQ(Good(Body("\"max_tokens\":null")).max_tokens, 16);
  EXPECT_EQ(Good(Body("\"max_tokens\":0")).max_tokens, 0);
}

TEST(CompletionRequest, RequiredMembers) {
  EXPECT_EQ(Refused("[]"), "");
  EXPECT_EQ(Refused(R"({"prompt":"x"})"), "model");
  EXPECT_EQ(Refused(R"({"model":5,"prompt":"x"})"), "model");
  EXPECT_EQ(Refused(R"({"model":"m"})"), "prompt");
  EXPECT_EQ(Refused(R"({"model":"m","prompt":null})"), "prompt");
  EXPECT_EQ(Refused(R"({"model":"m","prompt":[]})"), "prompt");
  EXPECT_EQ(Refused(R"({"model":"m","prompt":""})"), "accepted");
}

TEST(CompletionRequest, FieldsAreCheckedAgainstTheirRange) {
  struct Case {
    const char* param;
    std::vector<const char*> good, bad;
  };
  const Case kCases[] = {
      {"max_tokens", {"0", "5", "5.0", "1e3"}, {"-1", "1.5", "\"5\"", "true", "1e400"}},
      {"temperature", {"0", "2"}, {"-0.1", "2.1", "\"1\""}},
      {"top_p", {"0", "1"}, {"-1", "1.01"}},
      {"n", {"1", "128", "2.0"}, {"0", "129", "1.5", "\"1\""}},
      {"best_of", {"1", "128"}, {"0", "129", "1.5"}},
      {"logprobs", {"0", "5", "3.0"}, {"-1", "6", "true", "\"1\""}},
      {"echo", {"true", "false"}, {"1", "\"true\""}},
      {"suffix", {"\"\"", "\"x\""}, {"5", "[]"}},
      {"stop", {"\"x\"", "[]", R"(["a","b"])"}, {"5", "[1]"}},
      {"seed", {"0", "-5"}, {"1.5", "\"1\""}},
      {"frequency_penalty", {"-2", "2"}, {"-2.1", "3"}},
      {"presence_penalty", {"-2", "2"}, {"-2.1", "3"}},
      {"logit_bias", {"{}", R"({"50256":-100})"}, {"[]", R"({"1":101})"}},
      {"stream", {"true", "false"}, {"\"true\"", "1"}},
      {"stream_options", {"{}", R"({"include_usage":null})"}, {"[]", R"({"include_usage":1})"}},
  };
  for (const Case& c : kCases) {
    for (const char* value : c.good) Good(Body("\"" + std::string(c.param) + "\":" + value));
    for (const char* value : c.bad) {
      EXPECT_EQ(Refused(Body("\"" + std::string(c.param) + "\":" + value)), c.param) << value;
    }
  }
}

TEST(CompletionRequest, OneChoicePerPromptAndN) {
  const CanonicalRequest request = Good(Body("\"n\":3", R"(["a","b"])"));
  EXPECT_EQ(request.choices, 6);
  EXPECT_EQ(request.samples, 6);
  EXPECT_EQ(request.prompt.prompts, 2);
  EXPECT_EQ(Good(Body("", "[1,2,3]")).choices, 1);
  EXPECT_EQ(Good(Body("", "[[1,2],[3]]")).choices, 2);
  EXPECT_EQ(Refused(Body("\"n\":65", R"(["a","b"])")), "n");
  std::string many = "\"a\"";
  for (int i = 1; i < 128; ++i) many += ",\"a\"";
  EXPECT_EQ(Good(Body("", "[" + many + "]")).choices, 128);
  EXPECT_EQ(Refused(Body("", "[\"a\"," + many + "]")), "prompt");
}

TEST(CompletionRequest, BestOfIsAtLeastNAndNotStreamed) {
  const CanonicalRequest request = Good(Body(R"("n":2,"best_of":5)", R"(["a","b"])"));
  EXPECT_EQ(request.choices, 4);
  EXPECT_EQ(request.samples, 10);
  EXPECT_EQ(Refused(Body(R"("n":3,"best_of":2)")), "best_of");
  EXPECT_EQ(Refused(Body(R"("best_of":2,"stream":true)")), "best_of");
  EXPECT_EQ(Refused(Body(R"("n":2,"best_of":2,"stream":true)")), "accepted");
}

TEST(CompletionRequest, MaxTokensZeroEchoesThePrompt) {  // decision 30
  EXPECT_EQ(Good(Body(R"("max_tokens":0,"echo":true,"n":2)", R"(["a\n","b"])")).echo_json,
            (std::vector<std::string>{"a\\n", "a\\n", "b", "b"}));
  EXPECT_TRUE(Good(Body(R"("max_tokens":0,"echo":true)", "[1,2]")).echo_json.empty());
  EXPECT_TRUE(Good(Body(R"("max_tokens":0)")).echo_json.empty());
  EXPECT_TRUE(Good(Body(R"("max_tokens":1,"echo":true)")).echo_json.empty());
}

TEST(CompletionRequest, TheSuffixCountsForEveryPrompt) {
  EXPECT_EQ(Good(Body(R"("suffix":"123")", R"(["a","b"])")).prompt.text_bytes, 2 + 2 * 3);
}

}  // namespace
}  // namespace tollgate::gateway
