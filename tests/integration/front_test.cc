// The dashboard's own services and its playground with real processes: two routers, two simulated
// engines, and a gateway.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

class FrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (EngineSim* engine : {&one_, &two_}) {
      std::string failure;
      ASSERT_TRUE(engine->Start(&failure)) << failure;
    }
    ClusterOptions options;
    options.all_in_one = false;
    options.routers = 2;
    options.catalog = DefaultCatalog({one_.base_url(), two_.base_url()});
    cluster_.emplace(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }
  HttpResponse Admin(const std::string& method, const std::string& path,
                     const std::string& body = "") {
    return Http(cluster_->dashboard_port(), method, "/admin/v1/" + path,
                {{"authorization", "Bearer login-token-for-tests"}}, body);
  }
  Json Get(const std::string& path) {
    const HttpResponse answer = Admin("GET", path);
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    return answer.json();
  }
  // Credentials of a dashboard page for this key.
  static HeaderList Page(const ApiKey& key) {
    HeaderList headers = key.headers();
    headers.emplace_back("Sec-Fetch-Site", "same-origin");
    headers.emplace_back("Cookie", "tollgate=not-for-the-gateway");
    return headers;
  }
  static std::string ChatBody(const std::string& more) {
    return R"({"model":"sim/model","messages":[{"role":"user","content":"hello"}])" + more + "}";
  }
  // Number of chat completions that the engine received.
  static int64_t Served(const EngineSim& engine) { return engine.totals().requests; }

  EngineSim one_, two_;
  std::optional<Cluster> cluster_;
};

TEST_F(FrontTest, ADrainedEngineGetsNoRequestsOfAnyRouterAlsoAfterARestart) {
  const ApiKey key = cluster_->NewCustomer(1'000'000'000);
  const Json engines = Get("engines")["engines"];
  ASSERT_EQ(engines.size(), 3U) << engines.Dump();
  EXPECT_EQ(engines[0]["name"].str(), "engines/down");
  EXPECT_EQ(engines[1]["name"].str(), "engines/sim-1");
  EXPECT_EQ(engines[1]["routers"].size(), 2U);
  EXPECT_EQ(engines[1]["pool"].str(), "main");
  ASSERT_TRUE(WaitUntil(
      [&] {
        const Json down = Get("engines/down");
        return down["state"].str() == "ENGINE_STATE_DOWN" &&
               !down["routers"][0]["lastFailure"].str().empty() &&
               Get("engines/sim-1")["routers"][1]["healthCheckUs"].str() != "0";
      },
      10'000));
  const HttpResponse drained =
      Admin("POST", "engines/sim-1:drain", R"({"reason":"new driver","requestId":"d1"})");
  ASSERT_EQ(drained.status, 200) << drained.body;
  EXPECT_EQ(drained.json()["state"].str(), "ENGINE_STATE_DRAINED");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(cluster_->Post(key, "/v1/chat/completions", ChatBody("")).status, 200);
  EXPECT_EQ(Served(one_), 0);
  EXPECT_EQ(Served(two_), 8);
  for (const char* router : {"inference-router", "inference-router-2"}) {
    EXPECT_EQ(cluster_->process(router).Terminate(), 0);
    ASSERT_EQ(cluster_->Restart(router), "");
  }
  ASSERT_TRUE(WaitUntil(
      [&] {
        const HttpResponse answer = Admin("GET", "engines/sim-1");
        return answer.status == 200 && answer.json()["routers"].size() == 2 &&
               answer.json()["state"].str() == "ENGINE_STATE_DRAINED";
      },
      15'000));
  EXPECT_EQ(Admin("POST", "engines/sim-1:resume", "{}").json()["state"].str(), "ENGINE_STATE_UP");
  const Json entries = Get("auditEntries?filter=action%20%3D%20%22engine.drain%22")["auditEntries"];
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0]["subject"].str(), "sim-1");
  EXPECT_EQ(entries[0]["detail"].str(), "new driver");
}

TEST_F(FrontTest, AllProcessesAreListedAndOneThatIsGoneDoesNotAnswer) {
  const auto services = [](const Json& processes, bool answer) {
    std::multiset<std::string> names;
    for (const Json& process : processes.elements()) {
      if (process["answers"].boolean() == answer) names.insert(process["service"].str());
    }
    return names;
  };
  const std::multiset<std::string> all = {
      "auth",    "billing",          "catalog",          "dashboard",
      "gateway", "inference-router", "inference-router", "ratelimit"};
  const Json processes = Get("processes")["processes"];
  EXPECT_EQ(services(processes, true), all) << processes.Dump();
  std::set<std::string> ids;
  for (const Json& process : processes.elements()) {
    EXPECT_TRUE(process["ready"].boolean()) << process.Dump();
    EXPECT_FALSE(process["version"].str().empty());
    EXPECT_FALSE(process["startTime"].str().empty());
    ids.insert(process["name"].str());
  }
  EXPECT_EQ(ids.size(), all.size());
  cluster_->process("ratelimit").Kill();
  EXPECT_EQ(services(Get("processes")["processes"], false),
            std::multiset<std::string>{"ratelimit"});
  ASSERT_EQ(cluster_->Restart("ratelimit"), "");
}

TEST_F(FrontTest, TheSummaryIsWhatTheLedgerTheKeysAndTheRoutersHave) {
  const ApiKey key = cluster_->NewCustomer(1'000'000'000);
  const std::string path = "workspaces/" + key.workspace_id + "/summary";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cluster_->Post(key, "/v1/chat/completions", ChatBody(R"(,"stream":true)")).status,
              200);
  }
  // A refusal before any hold: the model does not exist.
  EXPECT_EQ(cluster_
                ->Post(key, "/v1/chat/completions",
                       R"({"model":"sim/none","messages":[{"role":"user","content":"a"}]})")
                .status,
            404);
  ASSERT_TRUE(cluster_->WaitIdle(key.workspace_id));
  Json summary = Get(path);
  EXPECT_EQ(summary["missing"].size(), 0U) << summary.Dump();
  EXPECT_EQ(summary["timeZone"].str(), "UTC");
  EXPECT_EQ(summary["runningRequests"].str(), "0");
  EXPECT_EQ(summary["today"]["requests"].str(), "3");
  const Json usage =
      Get("workspaces/" + key.workspace_id + "/usage:query?interval=USAGE_INTERVAL_NONE")["totals"];
  EXPECT_EQ(summary["today"]["costUsd"].str(), usage["costUsd"].str());
  EXPECT_EQ(summary["weekSpentUsd"].str(), usage["costUsd"].str());
  EXPECT_EQ(summary["today"]["tokens"].Dump(), usage["tokens"].Dump());
  EXPECT_EQ(summary["recent"]["requests"].str(), "3");
  EXPECT_EQ(summary["recent"]["outcomes"]["completed"].str(), "3");
  EXPECT_FALSE(summary["recent"]["firstTokenP95Us"].str().empty());
  EXPECT_EQ(summary["availableUsd"].str(),
            Get("workspaces/" + key.workspace_id + "/balance")["availableUsd"].str());
  EXPECT_EQ(summary["attention"].size(), 0U) << summary.Dump();
  // Gateways report refusals every 20 s.
  ASSERT_TRUE(WaitUntil([&] { return Get(path)["refusals"].size() == 1; }, 30'000, 500));
  EXPECT_EQ(Get(path)["refusals"][0]["count"].str(), "1");
  EXPECT_EQ(Get(path)["refusals"][0]["code"].str(), "model_unavailable");
  EXPECT_EQ(Get(path)["refusals"][0]["reason"].str(), "unknown_model");
  // One of the two engines is drained, and the cap is reached.
  ASSERT_EQ(Admin("POST", "engines/sim-2:drain", "{}").status, 200);
  ASSERT_TRUE(cluster_->SetCap(key.workspace_id, 1));
  summary = Get(path);
  ASSERT_EQ(summary["attention"].size(), 2U) << summary.Dump();
  EXPECT_EQ(summary["attention"][0]["kind"].str(), "ATTENTION_KIND_CAP");
  EXPECT_EQ(summary["attention"][1]["kind"].str(), "ATTENTION_KIND_ENGINES_DOWN");
  EXPECT_EQ(summary["attention"][1]["subject"].str(), "models/sim/model");
  EXPECT_EQ(summary["attention"][1]["down"].integer(), 1);
  EXPECT_EQ(summary["attention"][1]["engines"].integer(), 2);
  // A process that does not respond is left out of the summary.
  cluster_->process("billing").Kill();
  summary = Get(path);
  EXPECT_EQ(summary["missing"][0].str(), "billing");
  EXPECT_TRUE(summary["today"].is_null());
  EXPECT_TRUE(summary["availableUsd"].is_null());
  ASSERT_EQ(cluster_->Restart("billing"), "");
}

TEST_F(FrontTest, AStreamOfThePlaygroundIsThatOfTheGateway) {
  const ApiKey key = cluster_->NewCustomer(1'000'000'000);
  const std::string body = ChatBody(R"(,"stream":true,"stream_options":{"include_usage":true})");
  const SseStream stream =
      HttpStream(cluster_->dashboard_port(), "/playground/v1/chat/completions", Page(key), body);
  EXPECT_EQ(stream.head.status, 200) << stream.head.body;
  EXPECT_TRUE(stream.complete);
  EXPECT_TRUE(stream.done());
  EXPECT_FALSE(stream.Text().empty());
  const HttpResponse refused = Http(cluster_->dashboard_port(), "POST",
                                    "/playground/v1/chat/completions", key.headers(), body);
  EXPECT_EQ(refused.status, 403) << "not a page of the dashboard: " << refused.body;
  ApiKey wrong = key;
  wrong.secret.back() = wrong.secret.back() == 'a' ? 'b' : 'a';
  EXPECT_EQ(
      Http(cluster_->dashboard_port(), "POST", "/playground/v1/chat/completions", Page(wrong), body)
          .status,
      401);
  // The id that the page shows finds the receipt.
  const auto receipt = cluster_->Receipt(key.workspace_id, stream.head.header("x-request-id"));
  ASSERT_TRUE(receipt);
  EXPECT_EQ(receipt->outcome, "completed");
  EXPECT_TRUE(receipt->streamed);
}

TEST_F(FrontTest, APageThatLeavesEndsItsRequestAtTheEngine) {
  const ApiKey key = cluster_->NewCustomer(1'000'000'000);
  {
    HttpConnection page(cluster_->dashboard_port());
    ASSERT_TRUE(page.SendRequest(
        "POST", "/playground/v1/chat/completions", Page(key),
        ChatBody(R"(,"stream":true,"x_sim":{"tokens":100000,"token_ms":5},"max_tokens":60000)")));
    EXPECT_EQ(page.ReadHead().status, 200);
    ASSERT_TRUE(page.NextEvent()) << "pieces arrive while the answer runs";
    EXPECT_EQ(one_.running() + two_.running(), 1);
    page.Close(/*reset=*/true);
  }
  const auto aborted = [&] { return one_.totals().aborted + two_.totals().aborted; };
  EXPECT_TRUE(WaitUntil([&] { return aborted() == 1; }, 5'000, 10));
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id));
}

}  // namespace
}  // namespace tollgate::test
