// The amount of reasoning: what the engine receives, what the client receives and pays. See
// docs/design/wire.md 2.6.
#include "tests/integration/translation_fixture.h"

#include <map>

namespace tollgate::test {
namespace {

TEST_P(TranslationTest, ReasoningControlsBecomeTheEngines) {
  const std::string ask = R"("messages":[{"role":"user","content":"x"}],"reasoning":)";
  const std::string high = Sent(kChat, ask + R"({"effort":"high"})");
  EXPECT_NE(high.find(R"("reasoning_effort":"high")"), std::string::npos) << high;
  EXPECT_NE(high.find(R"("enable_thinking":true)"), std::string::npos) << high;
  EXPECT_EQ(high.find(R"("reasoning":)"), std::string::npos) << high;
  const std::string off = Sent(kChat, ask + R"({"enabled":false})");
  EXPECT_NE(off.find(R"("enable_thinking":false)"), std::string::npos) << off;
  EXPECT_NE(Sent(kChat, ask + R"({"max_tokens":700})").find(R"("reasoning_effort":"low")"),
            std::string::npos);
  const std::string bounded = Sent(kChat, ask + R"({"max_tokens":700})", "sim/budget");
  EXPECT_NE(bounded.find(R"("thinking_token_budget":700)"), std::string::npos) << bounded;
  EXPECT_NE(Sent(kMessages,
                 R"("max_tokens":9,"messages":[{"role":"user","content":"x"}],)"
                 R"("thinking":{"type":"enabled","budget_tokens":600})",
                 "sim/budget")
                .find(R"("thinking_token_budget":600)"),
            std::string::npos);
  const HttpResponse refused = Post(kChat, ask + R"({"effort":"huge"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"].str(), "reasoning.effort") << refused.body;
}

// Each surface, for each kind of engine (docs/design/wire.md 2.6).
TEST_P(TranslationTest, ReasoningIsTurnedOffInTheWordsOfTheKind) {
  const std::string chat = R"("messages":[{"role":"user","content":"x"}],)";
  const std::pair<const char*, std::string> kOff[] = {
      {kChat, chat + R"("reasoning":{"enabled":false})"},
      {kChat, chat + R"("reasoning":{"effort":"none"})"},
      {kMessages, chat + R"("max_tokens":9,"thinking":{"type":"disabled"})"},
      {kResponses, R"("input":"x","reasoning":{"effort":"none"})"}};
  const std::pair<const char*, std::string> kOn[] = {
      {kChat, chat + R"("reasoning":{"enabled":true})"},
      {kMessages, chat + R"("max_tokens":9,"thinking":{"type":"enabled","budget_tokens":2000})"}};
  for (const char* model : {"sim/cstrings", "sim/openai", "sim/tgi"}) {
    const bool tgi = std::string(model) == "sim/tgi";
    for (const auto& [path, members] : kOff) {
      SCOPED_TRACE(std::string(model) + path + members);
      const auto body = Json::Parse(Sent(path, members, model));
      ASSERT_TRUE(body);
      EXPECT_FALSE(body->has("chat_template_kwargs"));
      EXPECT_EQ((*body)["reasoning_effort"].str(), tgi ? "" : "none");
    }
    for (const auto& [path, members] : kOn) {
      SCOPED_TRACE(std::string(model) + path + members);
      const std::string sent = Sent(path, members, model);
      EXPECT_EQ(sent.find("chat_template_kwargs"), std::string::npos) << sent;
      EXPECT_EQ(sent.find("reasoning_effort"), std::string::npos) << sent;
    }
  }
}

TEST_P(TranslationTest, ExcludedReasoningIsCountedChargedAndNotSent) {
  const std::string ask =
      R"("messages":[{"role":"user","content":"x"}],"reasoning":{"exclude":true},)"
      R"("x_sim":{"tokens":4,"reasoning_tokens":6})";
  const HttpResponse answer = Post(kChat, ask);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_FALSE(answer.json()["choices"][0]["message"].has("reasoning_content")) << answer.body;
  const SseStream stream = cluster().Stream(
      key_,
      R"({"model":"sim/model","stream":true,"stream_options":{"include_usage":true},)" + ask + "}");
  EXPECT_EQ(stream.Text("reasoning_content"), "");
  EXPECT_FALSE(stream.Text().empty());
  for (const Json& usage : {answer.json()["usage"], stream.Usage()}) {
    EXPECT_EQ(usage["completion_tokens"].integer(), 10);
    EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"].integer(), 6) << usage.Dump();
  }
  const int64_t prompt = answer.json()["usage"]["prompt_tokens"].integer();
  EXPECT_EQ(Spent(), 2 * (prompt * 1'000 + 10 * 3'000));
}

TEST_P(TranslationTest, TheCatalogSaysHowReasoningIsControlled) {
  const Json list = Http(cluster().port(), "GET", "/v1/models", {}).json();
  std::map<std::string, std::string> controls;
  for (const Json& model : list["data"].elements()) {
    controls[model["id"].str()] = model["reasoning_parameters"].Dump();
  }
  EXPECT_EQ(controls["sim/model"], R"(["enabled","effort","exclude"])");
  EXPECT_EQ(controls["sim/budget"], R"(["enabled","effort","max_tokens","exclude"])");
  EXPECT_EQ(controls["sim/cstrings"], R"(["enabled","effort","exclude"])");
  EXPECT_EQ(controls["sim/openai"], R"(["enabled","effort","exclude"])");
  EXPECT_EQ(controls["sim/tgi"], R"(["exclude"])");
}

// The client disconnects in the middle of the reasoning; the engine has reported no reasoning
// tokens.
TEST_P(TranslationTest, AnAbortedStreamHasItsReasoningTokens) {
  {
    HttpConnection connection(cluster().port());
    ASSERT_TRUE(connection.SendRequest(
        "POST", kChat, key_.headers(),
        R"({"model":"sim/model","stream":true,"messages":[{"role":"user","content":"x"}],)"
        R"("x_sim":{"tokens":4,"reasoning_tokens":5000,"token_ms":5}})"));
    ASSERT_EQ(connection.ReadHead().status, 200);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(connection.NextEvent());
  }
  ASSERT_TRUE(cluster().WaitIdle(key_.workspace_id));
  const auto receipts = cluster().Receipts(key_.workspace_id);
  ASSERT_TRUE(receipts && receipts->size() == 1);
  const ReceiptView& receipt = receipts->front();
  EXPECT_GT(receipt.completion_tokens, 0);
  EXPECT_EQ(receipt.reasoning_tokens, receipt.completion_tokens) << "all of it was reasoning";
}

}  // namespace
}  // namespace tollgate::test
