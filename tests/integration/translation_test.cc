// What the engine gets of unusual requests, and what is charged for it: strings that no engine can
// take, late system messages, prompts above the window, reasoning controls. See decisions 38, 39,
// 44 and docs/design/wire.md 2.6, 7.1.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;
constexpr char kChat[] = "/v1/chat/completions";
constexpr char kMessages[] = "/v1/messages";
constexpr char kResponses[] = "/v1/responses";
constexpr char kCompletions[] = "/v1/completions";
constexpr char kEmbeddings[] = "/v1/embeddings";

// The engines take prompts of any size: their own window is far above "sim/small"'s.
std::string Catalog(const std::string& engine, const std::string& no_tokenizer) {
  const auto model = [](const std::string& id, int64_t window, const std::string& more) {
    return "  - id: " + id + "\n    context_window: " + std::to_string(window) +
           "\n    input_usd_per_million: \"1\"\n    output_usd_per_million: \"3\"\n" +
           "    capabilities: [chat, completion, embedding, tools, reasoning]\n" +
           "    engine_model: sim/model\n" + more;
  };
  const auto pool = [](const std::string& name, const std::string& kind, const std::string& url) {
    return "  - name: " + name + "\n    engines:\n      - id: " + name + "\n        kind: " + kind +
           "\n        base_url: " + url + "\n";
  };
  return "models:\n" + model("sim/model", 131072, "    pool: python\n") +
         model("sim/small", 1000, "    pool: python\n") +
         model("sim/uncounted", 1000, "    pool: mute\n") +
         model("sim/anywhere", 131072, "    pool: python\n    keep_system_messages: true\n") +
         model("sim/cstrings", 131072, "    pool: cstrings\n") +
         model("sim/budget", 131072, "    pool: python\n    reasoning_budget: true\n") +
         "pools:\n" + pool("python", "vllm", engine) + pool("cstrings", "ollama", engine) +
         pool("mute", "vllm", no_tokenizer);
}

EngineSimOptions Options(SimDialect dialect) {
  EngineSimOptions options;
  options.tokens = 5;
  options.dialect = dialect;
  return options;
}

struct World {
  EngineSim engine{Options(SimDialect::kVllm)};
  EngineSim mute{Options(SimDialect::kNone)};
  std::unique_ptr<Cluster> cluster;
  std::string failure;
};

// One of each kind for the whole binary.
class Worlds : public ::testing::Environment {
 public:
  World& Of(const std::string& kind) {
    std::unique_ptr<World>& world = worlds_[kind];
    if (world) return *world;
    world = std::make_unique<World>();
    if (!world->engine.Start(&world->failure) || !world->mute.Start(&world->failure)) return *world;
    ClusterOptions options;
    options.all_in_one = kind == "allinone";
    options.catalog = Catalog(world->engine.base_url(), world->mute.base_url());
    world->cluster = std::make_unique<Cluster>(options);
    world->failure = world->cluster->Start();
    return *world;
  }
  void TearDown() override {
    for (auto& [kind, world] : worlds_) {
      if (!world->cluster || !world->failure.empty()) continue;
      const LedgerCheck check = world->cluster->VerifyLedger();
      EXPECT_TRUE(check.ok) << kind << ": " << check.violations;
      EXPECT_EQ(world->cluster->StopOrderly(), "") << kind;
    }
    worlds_.clear();
  }

 private:
  std::map<std::string, std::unique_ptr<World>> worlds_;
};
Worlds* const kWorlds = static_cast<Worlds*>(::testing::AddGlobalTestEnvironment(new Worlds));

class TranslationTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(world().failure, "");
    world().engine.ForgetRequests();
    world().mute.ForgetRequests();
  }
  void TearDown() override {
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster().Logs().c_str());
  }
  World& world() const { return kWorlds->Of(GetParam()); }
  Cluster& cluster() const { return *world().cluster; }
  HttpResponse Post(const std::string& path, const std::string& members,
                    const std::string& model = "sim/model") {
    return cluster().Post(key_, path, "{\"model\":\"" + model + "\"," + members + "}");
  }
  // What the engine got of a request that is answered.
  std::string Sent(const std::string& path, const std::string& members,
                   const std::string& model = "sim/model") {
    const HttpResponse answer = Post(path, members, model);
    EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
    const std::vector<SimRequest> requests = world().engine.requests();
    return requests.empty() ? "" : requests.back().body;
  }
  int64_t Tokenized() const { return world().engine.totals().tokenizer_requests; }
  int64_t Generated() const { return world().engine.totals().requests; }
  int64_t Spent() {
    EXPECT_TRUE(cluster().WaitIdle(key_.workspace_id));
    return kUsd - cluster().Balance(key_.workspace_id)->posted;
  }

  const ApiKey key_ = kWorlds->Of(GetParam()).cluster->NewCustomer(kUsd);
};
INSTANTIATE_TEST_SUITE_P(Systems, TranslationTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

// The members of a request with this text, a JSON string, in each public format.
std::vector<std::pair<const char*, std::string>> Everywhere(const std::string& text) {
  return {
      {kChat, R"("messages":[{"role":"user","content":)" + text + "}]"},
      {kChat, R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,)"
              R"("tool_calls":[{"id":)" +
                  text + R"(,"type":"function","function":{"name":"f","arguments":"{}"}}]},)" +
                  R"({"role":"tool","tool_call_id":)" + text + R"(,"content":)" + text + "}]"},
      {kChat,
       R"("messages":[{"role":"user","name":)" + text + R"(,"content":"hi"}],"user":)" + text},
      {kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)" + text + "}]"},
      {kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":"hi"},)"
                  R"({"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f",)"
                  R"("input":{"a":)" +
                      text + R"(}}]},{"role":"user","content":[{"type":"tool_result",)" +
                      R"("tool_use_id":"i","content":)" + text + "}]}]"},
      {kResponses, R"("input":)" + text + R"(,"instructions":)" + text},
      {kResponses, R"("input":[{"role":"user","content":"hi"},{"type":"function_call",)"
                   R"("call_id":"i","name":"f","arguments":"{}"},{"type":"function_call_output",)"
                   R"("call_id":"i","output":)" +
                       text + "}]"},
      {kCompletions, R"("prompt":["x",)" + text + "]"},
      {kEmbeddings, R"("input":[)" + text + R"(,"x"])"},
  };
}

TEST_P(TranslationTest, ANulReachesEnginesThatTakeIt) {  // decision 38
  for (const auto& [path, members] : Everywhere(R"("a\u0000b")")) {
    SCOPED_TRACE(path + members);
    EXPECT_NE(Sent(path, members).find("a\\u0000b"), std::string::npos);
  }
}

TEST_P(TranslationTest, ANulIsReplacedForEnginesThatDoNot) {
  for (const auto& [path, members] : Everywhere(R"("a\u0000b")")) {
    SCOPED_TRACE(path + members);
    const std::string sent = Sent(path, members, "sim/cstrings");
    EXPECT_NE(sent.find("a\\ufffdb"), std::string::npos) << sent;
    EXPECT_EQ(sent.find("u0000"), std::string::npos) << sent;
  }
}

TEST_P(TranslationTest, ALoneSurrogateIsReplaced) {
  for (const auto& [path, members] : Everywhere(R"("a\ud83db")")) {
    SCOPED_TRACE(path + members);
    const std::string sent = Sent(path, members);
    EXPECT_NE(sent.find("a\\ufffdb"), std::string::npos) << sent;
    EXPECT_EQ(sent.find("ud83d"), std::string::npos) << sent;
  }
  EXPECT_EQ(Post(kChat, "\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]").status, 400)
      << "bytes that are no UTF-8 are not JSON";
}

TEST_P(TranslationTest, AModelWithANulInItsNameIsUnknown) {
  const HttpResponse answer =
      Post(kChat, R"("messages":[{"role":"user","content":"x"}])", "sim/model\\u0000");
  EXPECT_EQ(answer.status, 404) << answer.body;
  EXPECT_EQ(answer.json()["error"]["message"].str(),
            std::string("The model 'sim/model\0' is not in the catalog.", 45))
      << answer.body;
  EXPECT_EQ(Post(kCompletions, R"("prompt":"x")", "sim/mo\\u0000del").status, 404);
}

TEST_P(TranslationTest, CountTokensTakesANul) {
  const HttpResponse answer = Post("/v1/messages/count_tokens",
                                   R"("messages":[{"role":"user","content":"one\u0000 two"}])");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_GT(answer.json()["input_tokens"].integer(), 2);
}

// The engine's tool call with a NUL in its arguments can be sent back.
TEST_P(TranslationTest, ANulFromTheModelComesAndGoes) {
  const HttpResponse answer = Post(
      kChat, R"("messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":)"
             R"({"name":"f"}}],"x_sim":{"text":"a\u0000b","tool_calls":[{"name":"f","arguments":)"
             R"({"a":"\u0000"}}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json message = answer.json()["choices"][0]["message"];
  const std::string again =
      R"("messages":[{"role":"user","content":"x"},)" + message.Dump() +
      R"(,{"role":"tool","tool_call_id":"i","content":"\u0000"},{"role":"user","content":"y"}])";
  EXPECT_NE(Sent(kChat, again).find("\\u0000"), std::string::npos);
  EXPECT_EQ(Sent(kChat, again, "sim/cstrings").find("u0000"), std::string::npos);
}

constexpr char kLate[] =
    R"("messages":[{"role":"user","content":"one"},{"role":"system","content":"two"},)"
    R"({"role":"assistant","content":"three"},{"role":"user","content":"four"}])";
constexpr char kLateItems[] =
    R"("input":[{"role":"user","content":"one"},{"role":"developer","content":"two"},)"
    R"({"role":"assistant","content":"three"},{"role":"user","content":"four"}])";

std::string RolesOf(const std::string& body) {
  std::string roles;
  const std::optional<Json> parsed = Json::Parse(body);
  if (!parsed) return "not JSON";
  for (const Json& message : (*parsed)["messages"].elements()) roles += message["role"].str()[0];
  return roles;
}

TEST_P(TranslationTest, ALateSystemMessageIsFoldedUnlessTheModelTakesIt) {  // decision 39
  const std::string late_with_limit = R"("max_tokens":9,)" + std::string(kLate);
  for (const auto& [path, members] : {std::pair<const char*, std::string>{kChat, kLate},
                                      {kMessages, late_with_limit},
                                      {kResponses, kLateItems}}) {
    SCOPED_TRACE(path);
    const std::string folded = Sent(path, members);
    EXPECT_EQ(RolesOf(folded), "uau") << folded;
    const std::string first = folded.substr(0, folded.find("three"));
    EXPECT_NE(first.find("two"), std::string::npos)
        << "behind the user's first message: " << folded;
    EXPECT_EQ(RolesOf(Sent(path, members, "sim/anywhere")), "usau");
  }
}

// The charge is for the prompt that the engine has got.
TEST_P(TranslationTest, AFoldedMessageIsBilledAsTheEngineGotIt) {
  const HttpResponse answer = Post(kChat, kLate);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json usage = answer.json()["usage"];
  EXPECT_EQ(usage["prompt_tokens"].integer(), world().engine.requests().back().prompt_tokens);
  EXPECT_EQ(Spent(), usage["prompt_tokens"].integer() * 1'000 +
                         usage["completion_tokens"].integer() * 3'000);
}

std::string Words(int count) {
  std::string words = "\"w";
  for (int i = 1; i < count; ++i) words += " w";
  return words + "\"";
}

// "sim/small" has a window of 1000 tokens, and the engine takes any prompt.
TEST_P(TranslationTest, APromptAboveTheWindowIsRefused) {  // decision 44
  const struct {
    const char* path;
    std::string before, after, param;
  } kCases[] = {
      {kChat, R"("messages":[{"role":"user","content":)", "}]", "messages"},
      {kResponses, R"("input":)", "", "input"},
      {kCompletions, R"("prompt":)", "", "prompt"},
      {kCompletions, R"("prompt":["short",)", "]", "prompt"},
      {kEmbeddings, R"("input":)", "", "input"},
      {kEmbeddings, R"("input":["short",)", R"(,"other"])", "input"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.path + c.before);
    const int64_t before = Generated();
    const HttpResponse answer = Post(c.path, c.before + Words(1001) + c.after, "sim/small");
    EXPECT_EQ(answer.status, 400) << answer.body.substr(0, 500);
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["code"].str(), "context_length_exceeded") << answer.body.substr(0, 500);
    EXPECT_EQ(error["type"].str(), "invalid_request_error");
    EXPECT_EQ(error["param"].str(), c.param);
    EXPECT_NE(error["message"].str().find("maximum context length is 1000 tokens"),
              std::string::npos)
        << error["message"].str();
    EXPECT_EQ(Generated(), before) << "no engine has worked on it";
    const HttpResponse fits = Post(c.path, c.before + Words(900) + c.after, "sim/small");
    EXPECT_EQ(fits.status, 200) << fits.body.substr(0, 500);
  }
}

TEST_P(TranslationTest, APromptAboveTheWindowIsRefusedOnMessagesInItsOwnWords) {
  const HttpResponse answer = Post(
      kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)" + Words(1001) + "}]",
      "sim/small");
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_NE(answer.body.find("prompt is too long: 10"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("> 1000 maximum"), std::string::npos) << answer.body;
  EXPECT_EQ(Spent(), 0);
}

TEST_P(TranslationTest, APromptThatSurelyFitsIsNotCounted) {
  const int64_t before = Tokenized();
  EXPECT_EQ(Post(kChat, R"("messages":[{"role":"user","content":)" + Words(400) + "}]", "sim/small")
                .status,
            200);
  EXPECT_EQ(
      Post(kEmbeddings, R"("input":[)" + Words(400) + "," + Words(400) + "," + Words(400) + "]",
           "sim/small")
          .status,
      200)
      << "each has a window of its own";
  EXPECT_EQ(Tokenized(), before);
}

TEST_P(TranslationTest, WhereNoEngineCountsTheEngineDecides) {
  const HttpResponse answer =
      Post(kChat, R"("messages":[{"role":"user","content":)" + Words(1001) + "}]", "sim/uncounted");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

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
}

// The client leaves in the middle of the reasoning; the engine has reported no reasoning tokens.
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
