// Several models for one request (decision 66), with real engines, routers and ledger: the one that
// answers is named, limited, charged and reported as itself, and nothing is ever paid twice.
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;

// "sim/small" (a window of 2,000, 1 and 2 USD per million tokens), "sim/large" (5 and 9, with the
// catalog's own fall-back "sim/small"), and "sim/dark", whose engine cannot be reached (3 and 3).
std::string Catalog(const std::string& small_url, const std::string& large_url) {
  const auto model = [](const std::string& id, int window, const std::string& input,
                        const std::string& output, const std::string& more) {
    return "  - {id: sim/" + id + ", context_window: " + std::to_string(window) +
           ", input_usd_per_million: \"" + input + "\", output_usd_per_million: \"" + output +
           "\", capabilities: [chat, completion, embedding], engine_model: sim/model, pool: " + id +
           more + "}\n";
  };
  const auto pool = [](const std::string& name, const std::string& url) {
    return "  - {name: " + name + ", engines: [{id: engine-" + name + ", kind: vllm, base_url: \"" +
           url + "\"}]}\n";
  };
  return "models:\n" + model("small", 2'000, "1", "2", "") +
         model("large", 100'000, "5", "9", ", fallbacks: [sim/small]") +
         model("dark", 100'000, "3", "3", "") + "pools:\n" + pool("small", small_url) +
         pool("large", large_url) + pool("dark", "http://127.0.0.1:1");
}

EngineSimOptions Window(int64_t tokens) {
  EngineSimOptions options;
  options.context_window = tokens;
  return options;
}

class FallbackSystemTest : public ::testing::TestWithParam<bool> {
 protected:
  FallbackSystemTest() : small_(Window(2'000)), large_(Window(100'000)) {}
  void SetUp() override {
    ASSERT_TRUE(small_.Start());
    ASSERT_TRUE(large_.Start());
    ClusterOptions options;
    options.all_in_one = GetParam();
    options.routers = GetParam() ? 1 : 2;
    options.hold_ttl_seconds = 30;
    options.catalog = Catalog(small_.base_url(), large_.base_url());
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    const LedgerCheck check = cluster_->VerifyLedger();
    EXPECT_TRUE(check.ok) << check.violations;
    EXPECT_EQ(cluster_->OpenDeadLetters(), 0);
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  // Members of the request and rules of one endpoint.
  struct Surface {
    const char* body;
    bool generates = true;   // generates text, by a model that the answer names
    bool has_param = true;   // the error envelope has `param`
    bool one_model = false;  // `models` is refused
  };
  static std::vector<std::pair<const char*, Surface>> Surfaces() {
    const char* turns = R"("max_tokens":50,"messages":[{"role":"user","content":"hi"}])";
    const char* count = R"("messages":[{"role":"user","content":"hi"}])";
    return {{"/v1/chat/completions", {turns}},
            {"/v1/completions", {R"("prompt":"hi")"}},
            {"/v1/responses", {R"("input":"hi")"}},
            {"/v1/responses/input_tokens", {.body = R"("input":"hi")", .generates = false}},
            {"/v1/embeddings", {.body = R"("input":"hi")", .generates = false, .one_model = true}},
            {"/v1/messages", {.body = turns, .has_param = false}},
            {"/v1/messages/count_tokens", {.body = count, .generates = false, .has_param = false}}};
  }

  // members: the body without braces and messages.
  static std::string Body(const std::string& members, const std::string& content = "hello there") {
    return "{" + members + R"(,"messages":[{"role":"user","content":")" + content + "\"}]}";
  }
  HttpResponse Chat(const ApiKey& key, const std::string& members,
                    const std::string& content = "hello there") {
    return cluster_->Post(key, "/v1/chat/completions", Body(members, content));
  }
  int64_t SpentOf(const ApiKey& key) {
    EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id)) << "a hold was not released";
    const auto balance = cluster_->Balance(key.workspace_id);
    return balance ? kUsd - balance->available : -1;
  }
  // Cost in nano-USD, for prices in USD per million tokens.
  static int64_t Cost(const HttpResponse& answer, int64_t input, int64_t output) {
    const auto usage = answer.json()["usage"];
    return 1'000 * (usage["prompt_tokens"].integer() * input +
                    usage["completion_tokens"].integer() * output);
  }
  void ExpectReceipt(const ApiKey& key, const HttpResponse& answer, const std::string& model,
                     int64_t charged) {
    const auto receipt = cluster_->Receipt(key.workspace_id, answer.json()["id"].str());
    ASSERT_TRUE(receipt);
    EXPECT_EQ(receipt->model, model);
    EXPECT_EQ(receipt->charged, charged);
    EXPECT_EQ(receipt->state, "settled");
    const HttpResponse report = Http(cluster_->port(), "GET", "/api/v1/usage", key.headers());
    ASSERT_EQ(report.status, 200) << report.body;
    EXPECT_NE(report.body.find(model), std::string::npos) << report.body;
    EXPECT_EQ(report.body.find("sim/dark"), std::string::npos) << report.body;
  }

  EngineSim small_, large_;
  std::unique_ptr<Cluster> cluster_;
};

INSTANTIATE_TEST_SUITE_P(Systems, FallbackSystemTest, ::testing::Values(true, false),
                         [](const auto& one) { return one.param ? "allinone" : "tcp"; });

TEST_P(FallbackSystemTest, WhenTheFirstIsDownTheNextAnswersAtItsOwnPrice) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const HttpResponse answer = Chat(key, R"("model":"sim/dark","models":["sim/small","sim/large"])");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["model"].str(), "sim/small");
  EXPECT_EQ(answer.header("x-tollgate-model"), "sim/small");
  const int64_t cost = Cost(answer, 1, 2);
  EXPECT_EQ(SpentOf(key), cost);
  ExpectReceipt(key, answer, "sim/small", cost);
  EXPECT_EQ(small_.requests().back().body.find("models"), std::string::npos);
}

TEST_P(FallbackSystemTest, APromptTooLongForTheFirstGoesToALargerModel) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  std::string content;
  for (int i = 0; i < 6'000; ++i) content += "word ";
  const HttpResponse answer =
      Chat(key, R"("models":["sim/small","sim/large"],"max_tokens":20)", content);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["model"].str(), "sim/large");
  EXPECT_EQ(SpentOf(key), Cost(answer, 5, 9));
  // Without another model, the caller gets an error.
  EXPECT_EQ(Chat(key, R"("model":"sim/small","max_tokens":20)", content).status, 400);
}

TEST_P(FallbackSystemTest, AnEngineErrorOrOneAtCapacityGoesToTheNextModel) {
  for (const char* script :
       {R"({"status":500})", R"({"status":429})", R"({"cut_before_headers":true})"}) {
    large_.SetDefaultScript(script);
    const ApiKey key = cluster_->NewCustomer(kUsd);
    // The catalog's own fall-back, for a caller that lists none.
    const HttpResponse answer = Chat(key, R"("model":"sim/large")");
    ASSERT_EQ(answer.status, 200) << script << answer.body;
    EXPECT_EQ(answer.json()["model"].str(), "sim/small");
    const int64_t cost = Cost(answer, 1, 2);
    EXPECT_EQ(SpentOf(key), cost);
    ExpectReceipt(key, answer, "sim/small", cost);
    const HttpResponse off =
        Chat(key, R"("model":"sim/large","provider":{"allow_fallbacks":false})");
    EXPECT_GE(off.status, 429) << script;
    EXPECT_EQ(SpentOf(key), cost);
  }
}

TEST_P(FallbackSystemTest, StreamsNameTheModelThatAnswersAndStayWithIt) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const SseStream stream =
      HttpStream(cluster_->port(), "/v1/chat/completions", key.headers(),
                 Body(R"("models":["sim/dark","sim/large"],"stream":true)"), 30'000);
  ASSERT_EQ(stream.head.status, 200);
  EXPECT_TRUE(stream.done());
  for (const SseEvent& event : stream.events) {
    if (event.data != "[DONE]") EXPECT_EQ(event.json()["model"].str(), "sim/large");
  }
  // Once output was sent, a failure ends the request.
  large_.SetDefaultScript(R"({"tokens":50,"token_ms":2,"cut_after_tokens":10})");
  const SseStream broken =
      HttpStream(cluster_->port(), "/v1/chat/completions", key.headers(),
                 Body(R"("models":["sim/large","sim/small"],"stream":true)"), 30'000);
  EXPECT_EQ(broken.head.status, 200);
  EXPECT_FALSE(broken.done());
  EXPECT_TRUE(small_.requests().empty());
}

TEST_P(FallbackSystemTest, TheHoldCoversTheDearestWhileACheaperOneAnswers) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  small_.SetDefaultScript(R"({"delay_ms":20000})");
  auto waiting = std::async(std::launch::async, [&] {
    return HttpStream(cluster_->port(), "/v1/chat/completions", key.headers(),
                      Body(R"("models":["sim/small","sim/large"],"max_tokens":1000,"stream":true)"),
                      30'000);
  });
  ASSERT_TRUE(small_.WaitFor([](const EngineSim& sim) { return sim.running() == 1; }));
  const auto balance = cluster_->Balance(key.workspace_id);
  ASSERT_TRUE(balance);
  EXPECT_GT(balance->held, 1'000'000 * 9)
      << "1,000 tokens of the most expensive model, and the prompt";
  EXPECT_LT(balance->held, 1'000'000 * 9 + 200'000 * 5);
  small_.SetListening(false);  // breaks the connection: the other model answers
  EXPECT_TRUE(waiting.get().done());
  EXPECT_EQ(large_.requests().size(), 1u);
  ASSERT_TRUE(cluster_->WaitIdle(key.workspace_id));
  const auto receipts = cluster_->Receipts(key.workspace_id);
  ASSERT_TRUE(receipts);
  ASSERT_EQ(receipts->size(), 1u);
  EXPECT_EQ(receipts->at(0).model, "sim/large");
  // Too little for the most expensive model, which needs 27 x 5,000 + 9,000; the other one needs
  // 29,000.
  const ApiKey poor = cluster_->NewCustomer(100'000);
  EXPECT_EQ(Chat(poor, R"("models":["sim/small","sim/large"])").status, 402);
}

TEST_P(FallbackSystemTest, ATermThatNoModelMeetsNamesItsMember) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const std::pair<const char*, const char*> rows[] = {
      {R"("model":"sim/small","provider":{"max_price":{"prompt":0.999999}})",
       "provider.max_price.prompt"},
      {R"("model":"sim/small","provider":{"only":["elsewhere"]})", "provider.only"},
      {R"("model":"sim/small","provider":{"flavour":"sweet"})", "provider.flavour"},
      {R"("model":"sim/small","models":["sim/large",5])", "models[1]"},
      {R"("model":"sim/small","transforms":["middle-out"])", "transforms"}};
  for (const auto& [members, param] : rows) {
    const HttpResponse answer = Chat(key, members);
    EXPECT_EQ(answer.status, 400) << members << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"].str(), param) << members;
  }
  const HttpResponse unknown = Chat(key, R"("model":"sim/small","models":["sim/none"])");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(unknown.body.find("models[0]"), std::string::npos) << unknown.body;
  EXPECT_EQ(
      Chat(key, R"("model":"sim/small","provider":{"max_price":{"prompt":1,"completion":"2"}})")
          .status,
      200);
  EXPECT_EQ(Chat(key, R"("models":["sim/large","sim/small"],"provider":{"max_price":{"prompt":1}})")
                .json()["model"]
                .str(),
            "sim/small");
}

TEST_P(FallbackSystemTest, EverySurfaceNamesTheModelThatAnswers) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const std::string list = R"({"models":["sim/dark","sim/large"],)";
  for (const auto& [path, members] : Surfaces()) {
    if (!members.generates) continue;
    SCOPED_TRACE(path);
    const HttpResponse answer = cluster_->Post(key, path, list + members.body + "}");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json()["model"].str(), "sim/large");
    EXPECT_EQ(answer.header("x-tollgate-model"), "sim/large");
    const SseStream stream = HttpStream(cluster_->port(), path, key.headers(),
                                        list + members.body + R"(,"stream":true})", 30'000);
    ASSERT_EQ(stream.head.status, 200);
    EXPECT_EQ(stream.head.header("x-tollgate-model"), "sim/large");
    size_t named = 0;
    for (const SseEvent& event : stream.events) {
      const Json data = event.json();
      for (const Json& object : {data, data["message"], data["response"]}) {
        if (!object.has("model")) continue;
        EXPECT_EQ(object["model"].str(), "sim/large") << event.data;
        ++named;
      }
    }
    EXPECT_GT(named, 0u);
  }
}

// Every endpoint accepts the same list of terms; when they cannot be met, the response names the
// member: in `param`, or in the message on the Messages endpoints, whose envelope has no `param`.
TEST_P(FallbackSystemTest, EverySurfaceReadsTheTerms) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  const std::pair<const char*, const char*> refused[] = {
      {R"("model":"sim/small","provider":{"max_price":{"prompt":0.999999}})",
       "provider.max_price.prompt"},
      {R"("model":"sim/small","provider":{"only":["elsewhere"]})", "provider.only"},
      {R"("model":"sim/small","provider":{"data_collection":"deny"})", "provider.data_collection"},
      {R"("model":"sim/small","provider":{"flavour":"sweet"})", "provider.flavour"},
      {R"("model":"sim/small","provider":"any")", "provider"},
      {R"("model":"sim/small","models":"sim/large")", "models"},
      {R"("model":"sim/small","models":["sim/large",5])", "models[1]"},
      {R"("model":"sim/small","route":"best")", "route"},
      {R"("model":"sim/small","transforms":["middle-out"])", "transforms"},
      {R"("model":"sim/small","plugins":[{"id":"web"}])", "plugins"}};
  const char* const met[] = {
      R"("model":"sim/small","models":["sim/large"],"route":"fallback")",
      R"("models":["sim/large","sim/small"],"provider":{"max_price":{"prompt":1}})",
      R"("model":"sim/small","provider":{"only":["tollgate"],"allow_fallbacks":false})"};
  for (const auto& [path, members] : Surfaces()) {
    for (const auto& [terms, name] : refused) {
      const HttpResponse answer =
          cluster_->Post(key, path, "{" + std::string(terms) + "," + members.body + "}");
      SCOPED_TRACE(std::string(path) + " " + terms + " " + answer.body);
      EXPECT_EQ(answer.status, 400);
      const Json error = answer.json()["error"];
      const bool lists = std::string_view(terms).find("\"models\"") != std::string_view::npos;
      const std::string member = members.one_model && lists ? "models" : name;
      if (members.has_param) {
        EXPECT_EQ(error["param"].str(), member);
      }
      EXPECT_NE(error["message"].str().find("'" + member + "'"), std::string::npos);
    }
    for (const char* terms : met) {
      const HttpResponse answer =
          cluster_->Post(key, path, "{" + std::string(terms) + "," + members.body + "}");
      SCOPED_TRACE(std::string(path) + " " + terms + " " + answer.body);
      const bool lists = std::string_view(terms).find("\"models\"") != std::string_view::npos;
      EXPECT_EQ(answer.status, members.one_model && lists ? 400 : 200);
      if (members.generates) {
        EXPECT_EQ(answer.json()["model"].str(), "sim/small");
      }
    }
  }
}

// With two routers: one is killed while it asks the second model.
TEST_P(FallbackSystemTest, AKilledRouterBetweenTwoModelsCostsTheCallerNothingTwice) {
  if (GetParam()) GTEST_SKIP() << "one process has one router";
  const ApiKey key = cluster_->NewCustomer(kUsd);
  large_.SetDefaultScript(R"({"delay_ms":60000})");
  auto waiting = std::async(std::launch::async, [&] {
    return Chat(key, R"("models":["sim/dark","sim/large","sim/small"])");
  });
  ASSERT_TRUE(large_.WaitFor([](const EngineSim& sim) { return sim.running() == 1; }));
  large_.SetDefaultScript("{}");
  for (const char* name : {"inference-router", "inference-router-2"}) {
    // The router that runs it; the other one has no requests.
    Process& router = cluster_->process(name);
    router.Kill();
    if (large_.WaitFor([](const EngineSim& sim) { return sim.running() == 0; }, 8'000)) break;
    EXPECT_EQ(cluster_->Restart(name), "");
  }
  const HttpResponse answer = waiting.get();
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["model"].str(), "sim/large") << "the same model on another router";
  const int64_t cost = Cost(answer, 5, 9);
  EXPECT_EQ(SpentOf(key), cost);
  ExpectReceipt(key, answer, "sim/large", cost);
  for (const char* name : {"inference-router", "inference-router-2"}) {
    if (!cluster_->process(name).Running()) EXPECT_EQ(cluster_->Restart(name), "");
  }
}

}  // namespace
}  // namespace tollgate::test
