// Legacy completions through the whole product: shapes, several prompts, echo, log probabilities,
// best_of, ids outside the catalog. See docs/design/wire.md 3, decisions 18, 20, 23, 30.
#include <set>

#include "tests/integration/system_test.h"
#include "tests/support/sim_completions.h"

namespace tollgate::test {
namespace {

constexpr char kPath[] = "/v1/completions";

class CompletionsTest : public SystemTest {
 protected:
  static std::string Body(const std::string& more, const std::string& prompt,
                          const std::string& model) {
    return "{\"model\":\"" + model + "\",\"prompt\":" + prompt + more + "}";
  }
  HttpResponse Complete(const ApiKey& key, const std::string& more = "",
                        const std::string& prompt = "\"Once upon\"",
                        const std::string& model = "sim/text") {
    return cluster().Post(key, kPath, Body(more, prompt, model));
  }
  SseStream Stream(const ApiKey& key, const std::string& more = "",
                   const std::string& prompt = "\"Once upon\"") {
    return HttpStream(cluster().port(), kPath, key.headers(),
                      Body(",\"stream\":true" + more, prompt, "sim/text"));
  }
  // Adds terms for ids that the catalog does not list, until the end of the test.
  void ConfigureUnlisted(const std::string& input_price) {
    before_ = ReadFile(cluster().dir() + "/models.yaml");
    cluster().WriteCatalog(before_ +
                           "unlisted:\n  pool: main\n  context_window: 4096\n"
                           "  input_usd_per_million: \"" +
                           input_price + "\"\n  output_usd_per_million: \"2\"\n");
  }
  void TearDown() override {
    if (!before_.empty()) {
      cluster().WriteCatalog(before_);
      const ApiKey key = Customer();
      EXPECT_TRUE(WaitUntil(
          [&] { return Complete(key, "", "\"x\"", "outside/model").status == 404; }, 10'000, 20));
    }
    SystemTest::TearDown();
  }

 private:
  std::string before_;
};
INSTANTIATE_TEST_SUITE_P(Systems, CompletionsTest, kSystems,
                         [](const auto& info) { return info.param; });

TEST_P(CompletionsTest, TheResponseHasThePublishedShape) {
  const ApiKey key = Customer();
  const HttpResponse answer = Complete(key, R"(,"x_sim":{"tokens":12})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = answer.json();
  EXPECT_EQ(body["id"].str().rfind("cmpl-", 0), 0u);
  EXPECT_EQ(body["object"].str(), "text_completion");
  EXPECT_GT(body["created"].integer(), 1'700'000'000);
  EXPECT_EQ(body["model"].str(), "sim/text");
  EXPECT_EQ(body.size(), 6u) << answer.body;
  ASSERT_EQ(body["choices"].size(), 1u);
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice.size(), 4u) << choice.Dump();
  EXPECT_EQ(choice["index"].integer(-1), 0);
  EXPECT_FALSE(choice["text"].str().empty());
  EXPECT_TRUE(choice.has("logprobs") && choice["logprobs"].is_null());
  EXPECT_EQ(choice["finish_reason"].str(), "stop");
  EXPECT_EQ(body["usage"].Dump(),
            R"({"prompt_tokens":2,"completion_tokens":12,"total_tokens":14})");
  EXPECT_EQ(SpentOf(key), Charge(2, 12));
}

TEST_P(CompletionsTest, TheStreamEqualsTheUnstreamedResponse) {
  const ApiKey key = Customer();
  const SseStream stream =
      Stream(key, R"(,"stream_options":{"include_usage":true},"x_sim":{"tokens":9})");
  ASSERT_EQ(stream.head.status, 200) << stream.head.body;
  ASSERT_TRUE(stream.done());
  const std::string id = stream.events[0].json()["id"].str();
  int finishes = 0;
  for (size_t i = 0; i + 2 < stream.events.size(); ++i) {
    const Json chunk = stream.events[i].json();
    EXPECT_EQ(chunk["object"].str(), "text_completion") << "chunks have the same object name";
    EXPECT_EQ(chunk["id"].str(), id);
    EXPECT_TRUE(chunk.has("usage") && chunk["usage"].is_null());
    const Json& choice = chunk["choices"][0];
    EXPECT_EQ(choice.size(), 4u) << choice.Dump();
    EXPECT_TRUE(choice["text"].is_string());
    EXPECT_TRUE(choice["logprobs"].is_null());
    finishes += choice["finish_reason"].is_string() ? 1 : 0;
  }
  EXPECT_EQ(finishes, 1);
  const Json last = stream.events[stream.events.size() - 2].json();
  EXPECT_EQ(last["choices"].size(), 0u);
  EXPECT_EQ(last["usage"]["completion_tokens"].integer(), 9);
  EXPECT_EQ(stream.Text("text"),
            Complete(key, R"(,"x_sim":{"tokens":9})").json()["choices"][0]["text"].str());
  const SseStream plain = Stream(key, R"(,"x_sim":{"tokens":2})");
  for (const SseEvent& event : plain.events) {
    EXPECT_EQ(event.data.find("usage"), std::string::npos) << event.data;
  }
}

TEST_P(CompletionsTest, MaxTokensDefaultsToSixteen) {
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const Json body = Complete(key, R"(,"x_sim":{"tokens":40,"tag":")" + tag + "\"}").json();
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 16);
  EXPECT_EQ(body["choices"][0]["finish_reason"].str(), "length");
  EXPECT_EQ(Json::Parse(EngineRequests(tag).at(0).body)->operator[]("max_tokens").integer(), 16);
}

TEST_P(CompletionsTest, OneChoicePerPromptAndN) {
  const ApiKey key = Customer();
  const Json body =
      Complete(key, R"(,"n":2,"x_sim":{"tokens":3})", R"(["one","two words","one"])").json();
  ASSERT_EQ(body["choices"].size(), 6u) << body.Dump();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(body["choices"][i]["index"].integer(-1), i);
  EXPECT_EQ(body["choices"][0]["text"].str(), body["choices"][4]["text"].str());
  EXPECT_NE(body["choices"][0]["text"].str(), body["choices"][1]["text"].str());
  EXPECT_NE(body["choices"][0]["text"].str(), body["choices"][2]["text"].str());
  EXPECT_EQ(body["usage"]["prompt_tokens"].integer(), 4);
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 18);
  EXPECT_EQ(SpentOf(key), Charge(4, 18));
  const SseStream stream = Stream(key, R"(,"n":2,"x_sim":{"tokens":3})", R"(["one","two words"])");
  ASSERT_TRUE(stream.done());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(stream.Text("text", i), body["choices"][i]["text"].str());
    EXPECT_EQ(stream.FinishReason(i), "stop");
  }
}

TEST_P(CompletionsTest, TokenIdsInThePromptAreCountedExactly) {
  const ApiKey key = Customer();
  EXPECT_EQ(
      Complete(key, R"(,"max_tokens":1)", "[5,6,7]").json()["usage"]["prompt_tokens"].integer(), 3);
  EXPECT_EQ(SpentOf(key), Charge(3, 1));
  // The engine sends no usage, or an implausible one: the gateway's count is charged (decision 9).
  for (const char* usage : {"none", "absurd"}) {
    const ApiKey own = Customer();
    const Json body =
        Complete(own, R"(,"max_tokens":1,"x_sim":{"usage":")" + std::string(usage) + "\"}",
                 "[[5,6,7],[8]]")
            .json();
    EXPECT_EQ(body["choices"].size(), 2u) << body.Dump();
    EXPECT_EQ(body["usage"]["prompt_tokens"].integer(), 4) << usage;
    EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 2) << usage;
    EXPECT_EQ(SpentOf(own), Charge(4, 2)) << usage;
  }
}

TEST_P(CompletionsTest, TheMaximumNumberOfChoices) {
  std::string prompts = "[\"0\"";
  for (int i = 1; i < 128; ++i) prompts += ",\"" + std::to_string(i) + "\"";
  const ApiKey key = Customer();
  const Json body = Complete(key, R"(,"max_tokens":2)", prompts + "]").json();
  ASSERT_EQ(body["choices"].size(), 128u) << body.Dump().substr(0, 300);
  std::set<std::string> texts;
  for (const Json& choice : body["choices"].elements()) texts.insert(choice["text"].str());
  EXPECT_GT(texts.size(), 100u) << "each choice has its own text";
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 256);
  ExpectError(Complete(key, "", prompts + ",\"x\"]"), 400, "bad_request", "invalid_request_error",
              "prompt");
  ExpectError(Complete(key, R"(,"n":65)", R"(["a","b"])"), 400, "bad_request",
              "invalid_request_error", "n");
}

TEST_P(CompletionsTest, EchoWithLogprobsIncludesThePrompt) {
  const ApiKey key = Customer();
  const std::string more = R"(,"echo":true,"logprobs":1,"x_sim":{"text":" in Größe"})";
  const Json choice = Complete(key, more).json()["choices"][0];
  EXPECT_EQ(choice["text"].str(), "Once upon in Größe");
  const char* const expected =
      R"({"tokens":["Once"," upon"," in"," Größe"],"token_logprobs":[null,-0.25,-0.25,-0.25],)"
      R"("top_logprobs":[null,{" upon":-0.25,"<other>":-1.5},{" in":-0.25,"<other>":-1.5},)"
      R"({" Größe":-0.25,"<other>":-1.5}],"text_offset":[0,4,9,12]})";
  EXPECT_EQ(choice["logprobs"].Dump(), expected);
  const SseStream stream = Stream(key, more);
  EXPECT_EQ(stream.Text("text"), "Once upon in Größe");
  std::string tokens;
  for (const SseEvent& event : stream.events) {
    const Json chunk = event.json();
    for (const Json& token : chunk["choices"][0]["logprobs"]["tokens"].elements()) {
      tokens += token.str();
    }
  }
  EXPECT_EQ(tokens, "Once upon in Größe");
  EXPECT_EQ(SpentOf(key), 2 * Charge(2, 2)) << "the echo is not charged as output";
}

TEST_P(CompletionsTest, FieldsAreForwardedToTheEngine) {
  const std::string tag = NewTag();
  ASSERT_EQ(
      Complete(Customer(),
               R"(,"suffix":"the end","best_of":1,"logprobs":0,"stop":["zz"],"seed":3,)"
               R"("logit_bias":{"5":1},"top_k":2,"mirostat":[1,2.50],"user":"u","x_sim":{"tag":")" +
                   tag + "\"}")
          .status,
      200);
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].path, kPath);
  const Json sent = *Json::Parse(requests[0].body);
  EXPECT_EQ(sent["suffix"].str(), "the end");
  EXPECT_EQ(sent["mirostat"].Dump(), "[1,2.50]");
  EXPECT_EQ(sent["logprobs"].integer(-1), 0);
  EXPECT_FALSE(sent.has("user"));
}

TEST_P(CompletionsTest, HiddenCandidatesOfBestOfAreCharged) {
  const ApiKey key = Customer();
  const Json body =
      Complete(key, R"(,"n":2,"best_of":5,"max_tokens":7,"x_sim":{"tokens":7})").json();
  EXPECT_EQ(body["choices"].size(), 2u) << body.Dump();
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 5 * 7);
  EXPECT_EQ(SpentOf(key), Charge(2, 5 * 7));
  ExpectError(Complete(key, R"(,"n":3,"best_of":2)"), 400, "bad_request", "invalid_request_error",
              "best_of");
}

TEST_P(CompletionsTest, WithoutCreditForBestOfTheEngineIsNotCalled) {  // decision 1
  // Enough for the input and one slice of 4096 tokens, but not for 128 answers of 1000.
  const int64_t credit = Charge(100, 10'000);
  const ApiKey key = Customer(credit);
  const std::string tag = NewTag();
  ExpectError(Complete(key, R"(,"best_of":128,"max_tokens":1000,"x_sim":{"tag":")" + tag + "\"}"),
              402, "insufficient_credits", "permission_error");
  EXPECT_TRUE(EngineRequests(tag).empty());
  EXPECT_EQ(SpentOf(key, credit), 0);
  EXPECT_EQ(Complete(key, R"(,"best_of":2,"max_tokens":1000)").status, 200);
}

TEST_P(CompletionsTest, RefusalOfOtherModelsNamesChatCompletions) {
  const ApiKey key = Customer();
  for (const char* model : {"sim/model", "sim/vision", "sim/embed", "sim/dual"}) {
    const HttpResponse answer = Complete(key, "", "\"x\"", model);
    ExpectError(answer, 400, "bad_request", "invalid_request_error", "model");
    EXPECT_NE(answer.body.find("/v1/chat/completions"), std::string::npos) << answer.body;
  }
  ExpectError(cluster().Post(key, kPath, R"({"model":"sim/text"})"), 400, "bad_request",
              "invalid_request_error", "prompt");
}

TEST_P(CompletionsTest, MaxTokensZeroEchoesForFree) {  // decision 30
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const Json body = Complete(key, R"(,"max_tokens":0,"echo":true,"x_sim":{"tag":")" + tag + "\"}",
                             R"(["a\n","b"])")
                        .json();
  EXPECT_EQ(body["choices"][0]["text"].str(), "a\n") << body.Dump();
  EXPECT_EQ(body["choices"][1]["text"].str(), "b");
  EXPECT_EQ(body["choices"][1]["finish_reason"].str(), "length");
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(-1), 0);
  const SseStream stream = Stream(key, R"(,"max_tokens":0)");
  EXPECT_TRUE(stream.done());
  EXPECT_EQ(stream.Text("text"), "");
  EXPECT_EQ(stream.FinishReason(), "length");
  EXPECT_TRUE(EngineRequests(tag).empty());
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(CompletionsTest, ABrokenStreamEndsWithAnErrorWithoutDone) {  // decision 23
  const SseStream stream =
      Stream(Customer(), R"(,"x_sim":{"tokens":9,"token_ms":5,"cut_after_tokens":4})");
  ASSERT_EQ(stream.head.status, 200);
  EXPECT_FALSE(stream.done());
  EXPECT_EQ(stream.events.back().json()["error"]["code"].str(), "server_error");
}

TEST_P(CompletionsTest, AfterABreakEveryPromptIsCharged) {  // decision 7
  const ApiKey key = Customer();
  const SseStream stream = Stream(key, R"(,"x_sim":{"tokens":9,"token_ms":5,"cut_after_tokens":4})",
                                  "[[1,2,3],[4,5,6,7]]");
  EXPECT_FALSE(stream.done());
  EXPECT_EQ(SpentOf(key), Charge(7, 8))
      << "each prompt, although the engine reported one at a time";
}

TEST_P(CompletionsTest, ContextOverflowNamesTheNumbers) {
  const ApiKey key = Customer();
  const HttpResponse answer = Complete(key, R"(,"max_tokens":200000)");
  ExpectError(answer, 400, "context_length_exceeded", "invalid_request_error", "max_tokens");
  EXPECT_NE(answer.body.find("maximum context length is 131072 tokens"), std::string::npos);
}

TEST_P(CompletionsTest, IdsOutsideTheCatalogNeedTerms) {  // decision 20
  const ApiKey key = Customer();
  ExpectError(Complete(key, "", "\"x\"", "outside/model"), 404, "model_unavailable",
              "not_found_error");
  ConfigureUnlisted("1.5");
  // A generated token shows that gateway and router both have the new catalog.
  const ApiKey other = Customer();
  ASSERT_TRUE(WaitUntil(
      [&] { return Complete(other, R"(,"max_tokens":1)", "\"x\"", "outside/model").status == 200; },
      10'000, 20));
  const std::string tag = NewTag();
  const HttpResponse answer = Complete(key, R"(,"max_tokens":4,"x_sim":{"tag":")" + tag + "\"}",
                                       "[1,2,3]", "outside/model");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["model"].str(), "outside/model");
  EXPECT_EQ(Json::Parse(EngineRequests(tag).at(0).body)->operator[]("model").str(),
            "outside/model");
  EXPECT_EQ(SpentOf(key), 3 * 1500 + 4 * 2000) << "at the price for unlisted ids";
  // An id unknown to every engine is not found, nor are legacy ids; unlisted ids are not in the
  // list.
  ExpectError(Complete(key, "", "\"x\"", "unknown/model"), 404, "model_unavailable",
              "not_found_error");
  ExpectError(Complete(key, "", "\"x\"", "tollgate/model"), 404, "model_unavailable",
              "not_found_error");
  ExpectError(Chat(key, "", "outside/model"), 404, "model_unavailable", "not_found_error");
  EXPECT_EQ(Http(cluster().port(), "GET", "/v1/models").body.find("outside"), std::string::npos);
  const ApiKey narrow = Customer(kUsd, {.allowed_models = {"sim/text"}});
  ExpectError(Complete(narrow, "", "\"x\"", "outside/model"), 403, "model_blocked",
              "permission_error");
  EXPECT_EQ(SpentOf(key), 3 * 1500 + 4 * 2000);
}

}  // namespace
}  // namespace tollgate::test
