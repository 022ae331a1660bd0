// Keys, passwords, tokens, cookies, seeds, prompts and output are in no log, metric, file or
// database in plain text, and in no response except the one that issues them. A whole Tollgate, as
// one process and as a cluster, runs through success and through every failure that can be caused
// from outside (docs/design/keys.md 11).
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <chrono>
#include <filesystem>

#include "tests/secrets/people_calls.h"
#include "tests/secrets/secret_world.h"

namespace tollgate::test {
namespace {

using testing::TestPostgres;

constexpr int64_t kUsd = 1'000'000'000;
constexpr char kChat[] = "/v1/chat/completions";

class SecretsTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    TestPostgres* postgres = nullptr;
    if (!GetParam()) {
      postgres = TestPostgres::Shared();
      if (!postgres && TestPostgres::Required()) FAIL() << "no PostgreSQL";
    }
    postgres_ = postgres;
    world_ = std::make_unique<SecretWorld>(GetParam(), postgres);
    ASSERT_EQ(cluster().Start(60'000), "");
    prompt_ = world_->NewCanary("prompt");
    system_ = world_->NewCanary("system prompt");
    output_ = world_->NewCanary("output");
    arguments_ = world_->NewCanary("tool arguments");
    image_ = world_->NewCanary("image");
    key_ = NewKey(50 * kUsd);
  }
  Cluster& cluster() { return world_->cluster(); }

  // Creates a key and makes the random part of its secret a canary.
  ApiKey NewKey(int64_t nano_usd, const KeyOptions& options = {}) {
    const ApiKey key = cluster().NewCustomer(nano_usd, options);
    EXPECT_TRUE(world_->canaries().Add("virtual key", key.secret.substr(key.secret.size() - 49)));
    return key;
  }
  // {"model":…,"messages":[…]<more>} with canaries in all places; the answer contains the canary as
  // well.
  std::string Body(const std::string& more = "", const std::string& model = "sim/model") {
    return R"({"model":")" + model + R"(","messages":[{"role":"system","content":")" + system_ +
           R"("},{"role":"user","content":")" + prompt_ +
           R"("},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
           R"("function":{"name":"f","arguments":"{\"a\":\")" +
           arguments_ + R"(\"}"}}]},{"role":"tool","tool_call_id":"c1","content":")" + prompt_ +
           R"("}],"tools":[{"type":"function","function":{"name":"f","description":")" + prompt_ +
           R"(","parameters":{"type":"object"}}}],"user":")" + prompt_ + "\"" + Script(more) + "}";
  }
  // more: members of the body, or of x_sim after "sim:".
  std::string Script(const std::string& more) const {
    if (!more.starts_with("sim:")) return Answer("") + more;
    return Answer("," + more.substr(4));
  }
  std::string Answer(const std::string& members) const {
    return R"(,"x_sim":{"text":")" + output_ + " " + output_ + "\"" + members + "}";
  }
  HttpResponse Post(const ApiKey& key, const std::string& path, const std::string& body,
                    HeaderList more = {}) {
    HeaderList headers = key.headers();
    headers.insert(headers.end(), more.begin(), more.end());
    return world_->Collect(Http(cluster().port(), "POST", path, headers, body));
  }
  void Expect(int status, const HttpResponse& answer) {
    EXPECT_EQ(answer.status, status) << answer.body;
  }

  void Successes();
  void BadRequests();
  void WrongKeys();
  void LimitsAndMoney();
  void Engines();
  void Aborts();
  void LostServices();
  void People();
  void AdminCalls(PeopleCalls& anna);
  void WrittenEvidence();

  TestPostgres* postgres_ = nullptr;
  std::unique_ptr<SecretWorld> world_;
  ApiKey key_;
  std::string prompt_, system_, output_, arguments_, image_;
};

INSTANTIATE_TEST_SUITE_P(Systems, SecretsTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "allinone" : "cluster"; });

void SecretsTest::Successes() {
  const HttpResponse plain = Post(key_, kChat, Body());
  Expect(200, plain);
  EXPECT_NE(plain.body.find(output_), std::string::npos) << "the canary is in the answer";
  const SseStream stream = cluster().Stream(key_, Body(R"(,"stream":true)"));
  EXPECT_NE(stream.Text().find(output_), std::string::npos);
  // The same with a stored answer, which is then replayed.
  for (int i = 0; i < 2; ++i) {
    Expect(200, Post(key_, kChat, Body(), {{"Idempotency-Key", "once"}}));
  }
  Expect(200, Post(key_, kChat,
                   Body("sim:\"tool_calls\":[{\"name\":\"f\",\"arguments\":{\"a\":\"" + arguments_ +
                        "\"}}],\"reasoning_tokens\":3")));
  const std::string message = R"([{"role":"user","content":")" + prompt_ + "\"}]";
  Expect(200, Post(key_, "/v1/messages",
                   R"({"model":"sim/model","max_tokens":20,"system":")" + system_ +
                       R"(","messages":)" + message + "}"));
  Expect(200,
         Post(key_, "/v1/messages/count_tokens",
              R"({"model":"sim/model","system":")" + system_ + R"(","messages":)" + message + "}"));
  Expect(200, Post(key_, "/v1/responses",
                   R"({"model":"sim/model","instructions":")" + system_ + R"(","input":")" +
                       prompt_ + "\"}"));
  Expect(200, Post(key_, "/v1/completions", R"({"model":"sim/text","prompt":")" + prompt_ + "\"}"));
  Expect(200, Post(key_, "/v1/embeddings", R"({"model":"sim/embed","input":")" + prompt_ + "\"}"));
  const std::string image = R"([{"role":"user","content":[{"type":"image_url","image_url":)"
                            R"({"url":"data:image/png;base64,)" +
                            image_ + R"("}}]}])";
  Expect(200, Post(key_, kChat, R"({"model":"sim/vision","messages":)" + image + "}"));
  Expect(400, Post(key_, kChat, R"({"model":"sim/model","messages":)" + image + "}"));
  Expect(200, world_->CollectAll(Http(cluster().port(), "GET", "/v1/models", key_.headers())));
  Expect(200, world_->CollectAll(Http(cluster().port(), "GET", "/api/v1/usage", key_.headers())));
}

void SecretsTest::BadRequests() {
  const std::string quoted = "\"" + prompt_ + "\"";
  const std::string messages = R"({"model":"sim/model","messages":)";
  for (const std::string& body : {
           Body().substr(0, Body().size() / 2),
           "{" + prompt_ + "}",
           "{" + quoted + ":",
           quoted,
           "[" + quoted + "]",
           Body() + prompt_,
           R"({"model":"sim/model",)" + quoted + ":1," + quoted + ":2,\"messages\":[]}",
           messages + quoted + "}",
           messages + "[" + quoted + "]}",
           messages + R"([{"role":)" + quoted + R"(,"content":"x"}]})",
           messages + R"([{"role":"user","content":{)" + quoted + ":1}}]}",
           messages + R"([{"role":"user","content":[{"type":)" + quoted + "}]}]}",
           messages +
               R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://)" +
               prompt_ + "\"}}]}]}",
           messages + R"([{"role":"user","content":)" + quoted + R"(}],"max_tokens":)" + quoted +
               "}",
           messages + R"([{"role":"user","content":)" + quoted + R"(}],"temperature":)" + quoted +
               "}",
           messages + R"([{"role":"user","content":)" + quoted + R"(}],"stream":)" + quoted + "}",
           messages + R"([{"role":"user","content":)" + quoted + R"(}],"chat_template":)" + quoted +
               "}",
           messages + R"([{"role":"user","content":")" + prompt_ + "\xff\"}]}",
       }) {
    for (const char* path : {kChat, "/v1/messages", "/v1/responses", "/v1/completions",
                             "/v1/embeddings", "/v1/messages/count_tokens"}) {
      const int status = Post(key_, path, body).status;
      EXPECT_TRUE(status >= 200 && status < 500) << path << " " << status << " " << body;
    }
  }
  Expect(400, Post(key_, kChat, Body(), {{"Content-Encoding", prompt_}}));
  Expect(400, Post(key_, kChat, Body(), {{"Idempotency-Key", std::string(300, 'k') + prompt_}}));
  HttpConnection smuggler(cluster().port());
  smuggler.Send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " +
                key_.secret + "\r\nX-Bad\x01: " + prompt_ + "\r\n\r\n");
  world_->Collect(smuggler.ReadResponse());
}

void SecretsTest::WrongKeys() {
  const std::string& secret = key_.secret;
  std::string wrong = secret;
  wrong[wrong.size() - 8] = wrong[wrong.size() - 8] == 'a' ? 'b' : 'a';
  for (const std::string& authorization :
       {"Bearer " + wrong, "Bearer " + secret.substr(0, secret.size() - 1), "Bearer" + secret,
        "Basic " + secret, secret, "Bearer " + secret + " " + secret, "Bearer oldbrand_" + secret,
        "Bearer \"" + secret + "\""}) {
    HttpResponse answer = Http(cluster().port(), "POST", kChat,
                               {{"Authorization", authorization},
                                {"x-api-key", wrong},
                                {"x-request-id", secret},
                                {"User-Agent", secret},
                                {"Content-Type", "application/json"}},
                               Body());
    // The caller's own x-request-id is returned (decision 26).
    std::erase_if(answer.headers, [](const auto& header) {
      return header.first == "x-request-id" || header.first == "request-id";
    });
    world_->Collect(answer);
  }
  for (const std::string& target :
       {"/v1/" + secret, "/v1/models?key=" + secret, "/v1/chat/completions?api_key=" + secret,
        "/api/v1/usage?start=" + secret, "/api/v1/usage?range=" + secret}) {
    world_->Collect(Http(cluster().port(), "GET", target, key_.headers()));
  }
  // Canaries in the place of a model's name or an id.
  world_->Collect(Http(cluster().port(), "POST", kChat, key_.headers(), Body("", secret)));
}

void SecretsTest::LimitsAndMoney() {
  KeyOptions one_a_minute;
  one_a_minute.limits.requests_per_minute = 1;
  const ApiKey limited = NewKey(kUsd, one_a_minute);
  Expect(200, Post(limited, kChat, Body()));
  Expect(429, Post(limited, kChat, Body()));
  Expect(402, Post(NewKey(0), kChat, Body()));
  KeyOptions other_model;
  other_model.allowed_models = {"sim/vision"};
  Expect(403, Post(NewKey(kUsd, other_model), kChat, Body()));
  const ApiKey disabled = NewKey(kUsd);
  ASSERT_TRUE(cluster().SetKeyState(disabled, Cluster::KeyState::kDisabled));
  EXPECT_TRUE(WaitUntil([&] { return Post(disabled, kChat, Body()).status == 403; }, 10'000, 50));
  Expect(404, Post(key_, kChat, Body("", "sim/none")));
  EXPECT_GE(Post(key_, kChat, Body("", "sim/empty")).status, 500);
}

// Engines that echo the request and their key.
void SecretsTest::Engines() {
  const std::string echo = prompt_ + " " + system_ + " " + output_ + " Bearer " +
                           world_->engine_key() + " " + arguments_;
  for (const int status : {400, 401, 403, 404, 413, 422, 429, 500, 502, 503, 504}) {
    Post(key_, kChat,
         Body("sim:\"status\":" + std::to_string(status) +
              R"(,"error_body":{"error":{"message":")" + echo + R"(","type":")" + echo + "\"}}"));
    Post(key_, kChat,
         Body("sim:\"status\":" + std::to_string(status) + ",\"error_body\":\"" + echo + "\""));
  }
  for (const std::string& stream : {std::string(), std::string(",\"stream\":true")}) {
    for (const std::string& garbage :
         {"\"raw_chunks\":[\"" + echo + "\"]", "\"raw_chunks\":[\"data: " + echo + "\\n\\n\"]",
          "\"raw_chunks\":[\"data: {\\\"choices\\\":[{\\\"delta\\\":{\\\"content\\\":\\\"" + echo +
              "\"]",
          "\"raw_type\":\"text/html\",\"raw_chunks\":[\"" + echo + "\"]",
          "\"in_stream_error\":\"" + echo + "\"",
          "\"in_stream_error\":{\"message\":\"" + echo + "\"},\"in_stream_error_after\":1",
          std::string("\"cut_before_headers\":true"), std::string("\"cut_after_tokens\":1"),
          std::string("\"usage\":\"absurd\""), std::string("\"usage\":\"none\""),
          std::string("\"tool_calls\":[{\"name\":\"f\",\"arguments\":\"") + arguments_ + "\"}]"}) {
      const std::string body =
          Body("sim:" + garbage).substr(0, Body("sim:" + garbage).size() - 1) + stream + "}";
      // A started answer may contain output; its head and its errors are searched below.
      const HttpResponse answer = Post(key_, kChat, body);
      const size_t error = answer.body.find("\"error\"");
      if (answer.status == 200 && error != std::string::npos) {
        HttpResponse rest = answer;
        rest.body = answer.body.substr(error);
        world_->CollectAll(rest);
      }
    }
  }
  world_->engine().SetListening(false);
  Post(key_, kChat, Body());
  world_->engine().SetListening(true);
  EXPECT_TRUE(WaitUntil([&] { return Post(key_, kChat, Body()).status == 200; }, 20'000, 100));
}

void SecretsTest::Aborts() {
  for (int i = 0; i < 3; ++i) {
    HttpConnection connection(cluster().port());
    connection.SendRequest(
        "POST", kChat, key_.headers(),
        Body("sim:\"token_ms\":50,\"delay_ms\":100},\"stream\":true,\"x\":{\"a\":1"));
    if (i > 0) connection.ReadHead();
    if (i > 1) (void)connection.NextEvent();
    connection.Close(i == 2);
  }
  EXPECT_TRUE(world_->engine().WaitFor([](const EngineSim& sim) { return sim.running() == 0; }));
}

// Each service is unreachable, and a router is killed while it has requests.
void SecretsTest::LostServices() {
  if (world_->all_in_one()) return;
  for (const char* name : {"ratelimit", "billing", "auth", "inference-router", "catalog"}) {
    world_->CollectMetrics();
    HttpConnection running(cluster().port());
    running.SendRequest("POST", kChat, key_.headers(),
                        Body("sim:\"token_ms\":100},\"stream\":true,\"x\":{\"a\":1"));
    (void)running.ReadHead();
    cluster().process(name).Kill();
    Post(key_, kChat, Body());
    ApiKey unknown = key_;
    unknown.secret.back() = unknown.secret.back() == 'a' ? 'b' : 'a';
    Post(unknown, kChat, Body());
    running.Close();
    ASSERT_EQ(cluster().Restart(name, 30'000), "") << name;
    EXPECT_TRUE(WaitUntil([&] { return Post(key_, kChat, Body()).status == 200; }, 30'000, 100))
        << name;
  }
  if (postgres_ == nullptr) return;
  postgres_->Kill();
  Post(key_, kChat, Body());
  ASSERT_TRUE(postgres_->Run());
  EXPECT_TRUE(WaitUntil([&] { return Post(key_, kChat, Body()).status == 200; }, 30'000, 100));
}

void SecretsTest::People() {
  PeopleCalls anna(*world_, cluster().admin_grpc_address("auth"), cluster().dashboard_port());
  ASSERT_NO_FATAL_FAILURE(anna.SignInAsOperator("anna@example.com"));
  ASSERT_NO_FATAL_FAILURE(anna.SecondStep());
  ASSERT_NO_FATAL_FAILURE(anna.Mails());
  ASSERT_NO_FATAL_FAILURE(anna.AdminCalls(key_));
  ASSERT_NO_FATAL_FAILURE(anna.WrongSignIns());  // last: they are slowed down
}

TEST_P(SecretsTest, NothingThatIsSecretIsWrittenOrAnsweredAnywhere) {
  ASSERT_NO_FATAL_FAILURE(Successes());
  ASSERT_NO_FATAL_FAILURE(BadRequests());
  ASSERT_NO_FATAL_FAILURE(WrongKeys());
  ASSERT_NO_FATAL_FAILURE(LimitsAndMoney());
  ASSERT_NO_FATAL_FAILURE(Engines());
  ASSERT_NO_FATAL_FAILURE(Aborts());
  ASSERT_NO_FATAL_FAILURE(People());
  ASSERT_NO_FATAL_FAILURE(LostServices());
  world_->CollectMetrics();
  EXPECT_EQ(cluster().StopOrderly(), "");
  EXPECT_GT(world_->canaries().size(), 30U);
  for (const std::string& found : world_->Search()) ADD_FAILURE() << found;
  // Proves that the search works: it finds ids and names, which are not secrets.
  Canaries known;
  ASSERT_TRUE(known.Add("id of a key", key_.key_id));
  std::string files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cluster().dir())) {
    if (entry.is_regular_file()) files += ReadFile(entry.path());
  }
  EXPECT_FALSE(known.FindIn("files", files).empty());
  Canaries traced;
  ASSERT_TRUE(traced.Add("workspace of a key", key_.workspace_id));
  EXPECT_FALSE(traced.FindIn("traces", world_->traces()).empty());
}

}  // namespace
}  // namespace tollgate::test
