// Each cause of 429, as the gateway's access log names it (docs/operations/why-refused.md). The
// services are processes of their own, so the reasons of routers cross the wire.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/contract/endpoint_forms.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/http.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

constexpr int64_t kUsd = 1'000'000'000;

class RefusalReasonsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string error;
    for (EngineSim& engine : engines_) ASSERT_TRUE(engine.Start(&error)) << error;
    ClusterOptions options;
    options.all_in_one = false;
    options.threads = 1;  // reports wait on one event loop
    options.router_settings = {"queue_seconds: 2", "queue_requests: 1"};
    options.catalog = DefaultCatalog({engines_[0].base_url()});
    options.catalog.insert(
        options.catalog.find("pools:\n"),
        "  - id: sim/narrow\n    context_window: 131072\n"
        "    input_usd_per_million: \"1\"\n    output_usd_per_million: \"3\"\n"
        "    pool: narrow\n    engine_model: sim/model\n    capabilities: [chat]\n");
    options.catalog += "  - name: narrow\n    engines:\n      - id: narrow\n        kind: vllm\n" +
                       ("        base_url: " + engines_[1].base_url()) +
                       "\n        max_concurrency: 1\n";
    cluster_ = new Cluster(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  static void TearDownTestSuite() {
    EXPECT_EQ(cluster_->StopOrderly(), "");
    delete cluster_;
  }

  static const EndpointForm& Chat() { return EndpointForms()[0]; }
  static HeaderList Headers(const ApiKey& key, const std::string& name) {
    HeaderList headers = key.headers();
    headers.emplace_back("X-Request-Id", name);
    return headers;
  }
  HttpResponse Send(const ApiKey& key, const Ask& ask = {}) {
    return Http(cluster_->port(), "POST", Chat().path, Headers(key, NextName()), Chat().Body(ask));
  }
  // A request that runs, or waits, until the connection is closed.
  std::unique_ptr<HttpConnection> Begin(const ApiKey& key, const std::string& model) {
    auto connection = std::make_unique<HttpConnection>(cluster_->port());
    const std::string body = Chat().Body(
        {.model = model, .script = R"({"tokens":1000,"hang_after_tokens":2})", .stream = true});
    EXPECT_TRUE(connection->SendRequest("POST", Chat().path, Headers(key, NextName()), body));
    return connection;
  }
  static std::string NextName() { return "reasons-" + std::to_string(++names_); }

  // The line of the access log of the request with this name.
  static Json LineOf(const std::string& name) {
    Json found;
    EXPECT_TRUE(WaitUntil(
        [&] {
          std::istringstream lines(ReadFile(cluster_->dir() + "/gateway.log"));
          for (std::string line; std::getline(lines, line);) {
            if (line.find("\"" + name + "\"") == std::string::npos) continue;
            Json record = Json::Parse(line).value_or(Json());
            if (record["message"].str() != "request") continue;
            found = std::move(record);
            return true;
          }
          return false;
        },
        5'000, 20))
        << name;
    return found;
  }
  static void ExpectReason(const HttpResponse& answer, const ApiKey& key, const std::string& reason,
                           const std::string& code = "rate_limited") {
    EXPECT_EQ(answer.status, 429) << answer.body;
    EXPECT_EQ(answer.json()["error"]["code"].str(), code);
    EXPECT_EQ(answer.body.find("\"reason\""), std::string::npos) << answer.body;
    const Json line = LineOf(answer.header("x-request-id"));
    EXPECT_EQ(line["reason"].str(), reason) << line.Dump();
    EXPECT_EQ(line["code"].str(), code);
    EXPECT_EQ(line["key_id"].str(), key.key_id);
    EXPECT_EQ(line["workspace"].str(), key.workspace_id);
  }

  static inline EngineSim engines_[2];
  static inline Cluster* cluster_ = nullptr;
  static inline int names_ = 0;
};

TEST_F(RefusalReasonsTest, ALimitOnRequests) {
  const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.requests_per_minute = 1}});
  const HttpResponse accepted = Send(key);
  ASSERT_EQ(accepted.status, 200) << accepted.body;
  const Json line = LineOf(accepted.header("x-request-id"));
  for (const char* field : {"code", "reason", "key_id", "workspace"}) {
    EXPECT_FALSE(line[field].is_string()) << line.Dump();
  }
  ExpectReason(Send(key), key, "requests");
}

TEST_F(RefusalReasonsTest, ALimitOnTokens) {
  const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.tokens_per_minute = 20}});
  ASSERT_EQ(Send(key, {.words = 200}).status, 200);
  ExpectReason(Send(key), key, "tokens", "token_limited");
}

TEST_F(RefusalReasonsTest, ALimitOnConcurrentRequests) {
  const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.concurrent_requests = 1}});
  const auto running = Begin(key, "");
  ASSERT_EQ(running->ReadHead().status, 200);
  ExpectReason(Send(key), key, "concurrency");
}

TEST_F(RefusalReasonsTest, HeldCredit) {
  // Less than one slice of output: the running request holds all of it.
  const ApiKey key = cluster_->NewCustomer(200'000);
  const auto running = Begin(key, "");
  ASSERT_EQ(running->ReadHead().status, 200);
  ExpectReason(Send(key), key, "held");
}

TEST_F(RefusalReasonsTest, AnEngineThatRefuses) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  ExpectReason(Send(key, {.script = R"({"status":429})"}), key, "engine_refused");
}

// 60 at once, then one a second (docs/adr/0016).
TEST_F(RefusalReasonsTest, TooManyRefusalsOfAModel) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  HttpResponse answer;
  for (int i = 0; i < 200; ++i) {
    answer = Send(key, {.script = R"({"status":429})"});
    if (answer.body.find("more slowly") != std::string::npos) break;
  }
  ExpectReason(answer, key, "model_refusals");
}

TEST_F(RefusalReasonsTest, TooManyRefusalsOfAKey) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  HttpResponse answer;
  for (int i = 0; i < 200 && answer.status != 429; ++i) {
    answer = Send(key, {.script = R"({"status":400})"});
  }
  ExpectReason(answer, key, "refusals");
}

TEST_F(RefusalReasonsTest, AFullQueueAndAFullEngine) {
  const ApiKey key = cluster_->NewCustomer(10 * kUsd);
  const auto running = Begin(key, "sim/narrow");
  ASSERT_EQ(running->ReadHead().status, 200);
  const auto waiting = Begin(key, "sim/narrow");
  // The one that waits may come second.
  HttpResponse answer = Send(key, {.model = "sim/narrow"});
  if (LineOf(answer.header("x-request-id"))["reason"].str() == "queue_full") {
    ExpectReason(answer, key, "queue_full");
    ExpectReason(waiting->ReadResponse(), key, "engine_full");
  } else {
    ExpectReason(answer, key, "engine_full");
    ExpectReason(waiting->ReadResponse(), key, "queue_full");
  }
}

TEST_F(RefusalReasonsTest, TooManyUsageReports) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  ASSERT_EQ(Send(key).status, 200);  // the gateway knows the key
  // Billing answers none of them meanwhile: one is read, 64 wait, and the next one is refused.
  cluster_->process("billing").Signal(SIGSTOP);
  std::vector<std::unique_ptr<HttpConnection>> waiting;
  for (int i = 0; i < 65; ++i) {
    waiting.push_back(std::make_unique<HttpConnection>(cluster_->port()));
    EXPECT_TRUE(waiting.back()->SendRequest("GET", "/api/v1/usage", key.headers()));
  }
  HttpResponse answer;
  for (int i = 0; i < 20 && answer.status != 429; ++i) {
    HttpConnection connection(cluster_->port(), 500);
    answer = connection.Request("GET", "/api/v1/usage", Headers(key, NextName()));
  }
  cluster_->process("billing").Signal(SIGCONT);
  ExpectReason(answer, key, "reports");
  waiting.clear();
}

}  // namespace
}  // namespace tollgate::test
