// POST /v1/messages/count_tokens through the whole product: its count equals the input tokens that
// the request is charged. See docs/design/wire.md 6.4 and 10.3, decisions 7, 16, 30.
#include <array>
#include <cstdlib>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

constexpr char kMessages[] = "/v1/messages";
constexpr char kCount[] = "/v1/messages/count_tokens";

// Members of a request, without model and max_tokens, in every form that reaches a chat template.
const char* const kRequests[] = {
    R"("messages":[{"role":"user","content":"hello there"}])",
    R"("messages":[{"role":"user","content":"Grüße aus 東京東京東京東京 \ud83d\ude42\ud83d\ude42 na\u00efve\n\n  end"}])",
    R"("system":"You are brief.","messages":[{"role":"user","content":"hello"}])",
    R"("system":[{"type":"text","text":"You are"},{"type":"text","text":"very brief.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two three"}]}])",
    R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"},{"role":"user","content":"and again"}])",
    R"("tools":[{"name":"weather","description":"tells the weather of a city","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}],"messages":[{"role":"user","content":"how warm is it?"}])",
    R"("tools":[{"name":"weather","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"how warm?"},{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Bern"}},{"type":"tool_use","id":"toolu_2","name":"weather","input":{"city":"Rome"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"30 degrees"},{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":[{"type":"text","text":"no data"}]},{"type":"text","text":"well?"}]}])",
    R"("thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"think"}])",
    R"("thinking":{"type":"disabled"},"output_config":{"effort":"high"},"messages":[{"role":"user","content":"do not think"}])",
};

std::string Body(const std::string& members, const std::string& model = "sim/model") {
  return "{\"model\":\"" + model + "\"," + members + "}";
}

HeaderList ApiKeyHeaders(const ApiKey& key) {
  return {{"x-api-key", key.secret},
          {"Content-Type", "application/json"},
          {"anthropic-version", "2023-06-01"}};
}

int64_t CountOf(const HttpResponse& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body << answer.error;
  const Json body = answer.json();
  EXPECT_EQ(body.size(), 1u) << answer.body;
  return body["input_tokens"].integer(-1);
}

// Compares the Messages envelope exactly.
void ExpectMessagesError(const HttpResponse& answer, int status, const std::string& code,
                         const std::string& type) {
  EXPECT_EQ(answer.status, status) << answer.body << answer.error;
  const Json body = answer.json();
  EXPECT_EQ(body["type"].str(), "error") << answer.body;
  EXPECT_EQ(body["error"]["code"].str(), code) << answer.body;
  EXPECT_EQ(body["error"]["type"].str(), type) << answer.body;
  EXPECT_FALSE(body["error"].has("param"));
}

class CountTokensTest : public SystemTest {
 protected:
  HttpResponse Count(const ApiKey& key, const std::string& body) {
    return Http(cluster().port(), "POST", kCount, ApiKeyHeaders(key), body);
  }
  int64_t TokenizerCalls() const {
    return engine(0).totals().tokenizer_requests + engine(1).totals().tokenizer_requests;
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, CountTokensTest, kSystems,
                         [](const auto& info) { return info.param; });

TEST_P(CountTokensTest, EqualsTheInputTokensBilled) {
  for (const char* members : kRequests) {
    SCOPED_TRACE(members);
    const ApiKey key = Customer();
    const int64_t before = TokenizerCalls();
    const int64_t counted = CountOf(Count(key, Body(members)));
    EXPECT_EQ(TokenizerCalls(), before + 1) << "counted by the engine's tokenizer";
    EXPECT_EQ(SpentOf(key), 0) << "counting is free";
    const HttpResponse answer = Http(cluster().port(), "POST", kMessages, ApiKeyHeaders(key),
                                     Body("\"max_tokens\":2000," + std::string(members)));
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json usage = answer.json()["usage"];
    EXPECT_EQ(counted, usage["input_tokens"].integer()) << usage.Dump();
    EXPECT_EQ(SpentOf(key), Charge(counted, usage["output_tokens"].integer()));
  }
}

TEST_P(CountTokensTest, NeedsAKeyButNoCredit) {
  EXPECT_GT(CountOf(Count(Customer(0), Body(kRequests[0]))), 0) << "decision 7";
  ApiKey wrong = Customer(0);
  ExpectMessagesError(Http(cluster().port(), "POST", kCount, {}, Body(kRequests[0])), 401,
                      "invalid_api_key", "authentication_error");
  wrong.secret.back() = wrong.secret.back() == 'a' ? 'b' : 'a';
  ExpectMessagesError(Count(wrong, Body(kRequests[0])), 401, "invalid_api_key",
                      "authentication_error");
  const ApiKey bearer = Customer(0);
  EXPECT_GT(CountOf(cluster().Post(bearer, kCount, Body(kRequests[0]))), 0);
  cluster().SetKeyState(bearer, Cluster::KeyState::kDisabled);
  EXPECT_TRUE(WaitUntil(
      [&] {
        for (int i = 0; i < 8; ++i) {
          if (Count(bearer, Body(kRequests[0])).status != 403) return false;
        }
        return true;
      },
      2000));
  ExpectMessagesError(Count(bearer, Body(kRequests[0])), 403, "virtual_key_blocked",
                      "permission_error");
}

TEST_P(CountTokensTest, ChecksShapeAndModelLikeAMessage) {
  const ApiKey key = Customer();
  for (
      const char* body :
      {"{", "[]", R"({"model":"sim/model"})", R"({"messages":[{"role":"user","content":"x"}]})",
       R"({"model":"sim/model","messages":[]})", R"({"model":"sim/model","messages":"x"})",
       R"({"model":7,"messages":[{"role":"user","content":"x"}]})",
       R"({"model":"sim/model","model":"sim/model","messages":[{"role":"user","content":"x"}]})"}) {
    SCOPED_TRACE(body);
    ExpectMessagesError(Count(key, body), 400, "bad_request", "invalid_request_error");
  }
  ExpectMessagesError(Count(key, Body(kRequests[0], "sim/nothing")), 404, "model_unavailable",
                      "not_found_error");
  ExpectMessagesError(Count(key, Body(kRequests[0], "sim/suspended")), 503, "model_unavailable",
                      "not_found_error");
  ExpectMessagesError(Count(key, Body(kRequests[0], "sim/text")), 400, "bad_request",
                      "invalid_request_error");
  const ApiKey limited = Customer(kUsd, {.allowed_models = {"sim/text"}});
  ExpectMessagesError(Count(limited, Body(kRequests[0])), 403, "model_blocked", "permission_error");
}

TEST_P(CountTokensTest, CountsAsARequestButTakesNoTokensFromTheLimits) {
  const ApiKey key = Customer(kUsd, {.limits = {.requests_per_minute = 3, .tokens_per_minute = 1}});
  for (int i = 0; i < 3; ++i) EXPECT_GT(CountOf(Count(key, Body(kRequests[0]))), 1);
  const HttpResponse fourth = Count(key, Body(kRequests[0]));
  ExpectMessagesError(fourth, 429, "rate_limited", "rate_limit_error");
  EXPECT_GE(std::atoi(fourth.header("retry-after").c_str()), 1);
}

TEST_P(CountTokensTest, TheSlotIsReleasedBeforeTheResponse) {
  const ApiKey key = Customer(kUsd, {.limits = {.concurrent_requests = 1}});
  const ApiKey poor = Customer(0, {.limits = {.concurrent_requests = 1}});
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(Count(key, Body(kRequests[0])).status, 200) << i;
    ASSERT_EQ(Chat(key, R"(,"x_sim":{"tokens":1})").status, 200) << i;
    ASSERT_TRUE(ChatStream(key, R"(,"x_sim":{"tokens":1})").done()) << i;
    ASSERT_EQ(Chat(poor).status, 402) << "a refusal also releases its slot first: " << i;
  }
}

TEST_P(CountTokensTest, IsEstimatedWhenNoEngineCanCount) {
  const ApiKey key = Customer();
  // sim/empty: its engine refuses connections.
  const int64_t estimated = CountOf(Count(key, Body(kRequests[0], "sim/empty")));
  EXPECT_GT(estimated, 0);
  for (int i = 0; i < 2; ++i) engine(i).SetDefaultScript(R"({"tokenizer_status":500})");
  EXPECT_EQ(CountOf(Count(key, Body(kRequests[0]))), estimated) << "the same documented estimate";
  engine(1).SetDefaultScript("{}");
  const int64_t counted = Chat(key).json()["usage"]["prompt_tokens"].integer();
  ASSERT_NE(counted, estimated) << "estimate and count must differ for this test";
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(CountOf(Count(key, Body(kRequests[0]))), counted) << "the other engine counts";
  }
}

TEST_P(CountTokensTest, IsEstimatedWhileTheRouterOrTheLimiterIsUnreachable) {
  if (GetParam() != "tcp") GTEST_SKIP() << "its services cannot be stopped separately";
  const ApiKey key = Customer(kUsd, {.limits = {.concurrent_requests = 8}});
  const int64_t counted = CountOf(Count(key, Body(kRequests[0])));
  const int64_t estimate = CountOf(Count(key, Body(kRequests[0], "sim/empty")));
  cluster().process("inference-router").Kill();
  EXPECT_EQ(CountOf(Count(key, Body(kRequests[0]))), estimate);
  EXPECT_EQ(cluster().Restart("inference-router"), "");
  EXPECT_TRUE(WaitUntil([&] { return CountOf(Count(key, Body(kRequests[0]))) == counted; }, 5000));
  cluster().process("ratelimit").Kill();
  EXPECT_EQ(CountOf(Count(key, Body(kRequests[0]))), counted)
      << "rate limiter unreachable: local limits apply";
  EXPECT_EQ(Chat(key).status, 200) << "no request waits for an unreachable limiter";
  EXPECT_EQ(cluster().Restart("ratelimit"), "");
}

TEST_P(CountTokensTest, MaxTokensZeroReportsTheSameCount) {
  const ApiKey key = Customer();
  const int64_t counted = CountOf(Count(key, Body(kRequests[0])));
  const Json chat = Chat(key, ",\"max_tokens\":0").json();
  EXPECT_EQ(chat["usage"]["prompt_tokens"].integer(), counted) << chat.Dump();
  EXPECT_EQ(chat["usage"]["completion_tokens"].integer(-1), 0);
  const HttpResponse message =
      Http(cluster().port(), "POST", kMessages, ApiKeyHeaders(key),
           Body(R"("max_tokens":0,"messages":[{"role":"user","content":"hello there"}])"));
  EXPECT_EQ(message.json()["usage"]["input_tokens"].integer(), counted) << message.body;
  EXPECT_EQ(SpentOf(key), 0);
}

// Engines of every other kind, each behind its own model.
struct Kind {
  const char* name;
  SimDialect dialect;
  bool counts;
};
constexpr std::array<Kind, 7> kKinds = {{{"vllm", SimDialect::kVllm, true},
                                         {"sglang", SimDialect::kSglang, true},
                                         {"llamacpp", SimDialect::kLlamaCpp, true},
                                         {"tgi", SimDialect::kTgi, true},
                                         {"openai", SimDialect::kVllm, true},
                                         {"openai", SimDialect::kNone, false},
                                         {"ollama", SimDialect::kNone, false}}};

TEST(CountTokensKinds, EveryKindOfEngineCountsAsItBills) {
  std::vector<std::unique_ptr<EngineSim>> engines;
  std::string models = "models:\n", pools = "pools:\n";
  for (size_t i = 0; i < kKinds.size(); ++i) {
    engines.push_back(std::make_unique<EngineSim>(EngineSimOptions{.dialect = kKinds[i].dialect}));
    ASSERT_TRUE(engines.back()->Start());
    const std::string number = std::to_string(i);
    models += "  - id: sim/m" + number +
              "\n    name: M\n    context_window: 131072\n    max_output_tokens: 65536\n"
              "    input_usd_per_million: \"1\"\n    output_usd_per_million: \"1\"\n"
              "    capabilities: [chat, tools]\n    created: \"2026-01-02\"\n"
              "    engine_model: sim/model\n    pool: p" +
              number + "\n";
    pools += "  - name: p" + number + "\n    engines:\n      - id: e" + number +
             "\n        kind: " + kKinds[i].name +
             "\n        base_url: " + engines.back()->base_url() + "\n";
  }
  Cluster cluster({.catalog = models + pools});
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(kUsd);
  for (size_t i = 0; i < kKinds.size(); ++i) {
    for (const char* members : kRequests) {
      SCOPED_TRACE(std::string(kKinds[i].name) + " " + members);
      const std::string model = "sim/m" + std::to_string(i);
      const int64_t counted =
          CountOf(Http(cluster.port(), "POST", kCount, ApiKeyHeaders(key), Body(members, model)));
      const HttpResponse answer = Http(cluster.port(), "POST", kMessages, ApiKeyHeaders(key),
                                       Body("\"max_tokens\":2000," + std::string(members), model));
      ASSERT_EQ(answer.status, 200) << answer.body;
      const int64_t billed = answer.json()["usage"]["input_tokens"].integer();
      if (kKinds[i].counts) {
        EXPECT_EQ(counted, billed);
      } else {
        EXPECT_GT(counted, 0);
        EXPECT_EQ(engines[i]->totals().tokenizer_requests, 0);
      }
    }
  }
  EXPECT_EQ(cluster.StopOrderly(), "");
}

// POST /v1/responses/input_tokens: the same, in the form of the Responses API.
TEST_P(CountTokensTest, InputTokensEqualThoseOfTheResponse) {
  for (const std::string members :
       {R"("input":"hello there")", R"("instructions":"be brief","input":"hello")",
        R"("input":[{"role":"user","content":[{"type":"input_text","text":"one two"}]}])",
        R"("tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":"x")"}) {
    SCOPED_TRACE(members);
    const ApiKey key = Customer();
    const std::string body = R"({"model":"sim/model",)" + members + "}";
    const HttpResponse count = cluster().Post(key, "/v1/responses/input_tokens", body);
    ASSERT_EQ(count.status, 200) << count.body;
    EXPECT_EQ(count.json()["object"].str(), "response.input_tokens");
    EXPECT_EQ(count.json().size(), 2u);
    EXPECT_EQ(SpentOf(key), 0) << "counting is free";
    const HttpResponse answer = cluster().Post(key, "/v1/responses", body);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(count.json()["input_tokens"].integer(),
              answer.json()["usage"]["input_tokens"].integer());
  }
}

}  // namespace
}  // namespace tollgate::test
