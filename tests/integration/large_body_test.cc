// Bodies larger than any message between processes: up to the limits of gateway and router they
// reach the engine on every transport, and other requests are answered meanwhile; above the
// router's limit they get the error of the catalog, cost nothing and do not affect other requests.
// A stopped router costs the gateway neither memory nor a long wait (docs/design/failures.md row
// 22).
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;

// A separate system with larger limits than the default.
class LargeBodyTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    EngineSimOptions engine;
    engine.models = {"sim/model"};
    engine_ = std::make_unique<EngineSim>(engine);
    ASSERT_TRUE(engine_->Start());
    ClusterOptions options;
    options.all_in_one = GetParam() != "tcp";
    options.grpc_in_process = GetParam() == "allinone_grpc";
    options.catalog = DefaultCatalog({engine_->base_url()});
    options.gateway_settings = {"max_body_bytes: " + std::to_string(80 * kMiB)};
    options.router_settings = {"max_body_bytes: " + std::to_string(72 * kMiB)};
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    key_ = cluster_->NewCustomer(kUsd);
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->Crashes(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
    EXPECT_EQ(cluster_->StopOrderly(), "");
  }
  // A chat request whose body has this many bytes more than a small one.
  HttpResponse Chat(const ApiKey& key, const std::string& tag, size_t bytes) {
    const std::string body = ChatBody(R"(,"x_sim":{"tag":")" + tag + R"(","padding":")" +
                                      std::string(bytes, 'x') + "\"}");
    return Http(cluster_->port(), "POST", kChat, key.headers(), body, 60'000);
  }
  int64_t Spent(const ApiKey& key) {
    EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id)) << "a hold was not released";
    return kUsd - cluster_->Balance(key.workspace_id).value_or(BalanceView{}).available;
  }
  size_t BodyAtEngine(const std::string& tag) {
    for (const SimRequest& request : engine_->requests()) {
      if (request.tag == tag) return request.body.size();
    }
    return 0;
  }

  std::unique_ptr<EngineSim> engine_;
  std::unique_ptr<Cluster> cluster_;
  ApiKey key_;
};
INSTANTIATE_TEST_SUITE_P(Systems, LargeBodyTest, kSystems,
                         [](const auto& info) { return info.param; });

TEST_P(LargeBodyTest, ItReachesTheEngineWhileOtherRequestsAreAnswered) {
  std::atomic<bool> done{false};
  HttpResponse large;
  std::thread sender([&] {
    large = Chat(key_, "large", 70 * kMiB);
    done = true;
  });
  int answered = 0;
  while (!done) {
    const HttpResponse small = Chat(key_, "small", 10);
    EXPECT_EQ(small.status, 200) << small.body << small.error;
    answered += done ? 0 : 1;
  }
  sender.join();
  EXPECT_EQ(large.status, 200) << large.body << large.error;
  EXPECT_GT(BodyAtEngine("large"), 70 * kMiB);
  EXPECT_GT(answered, 0);
}

TEST_P(LargeBodyTest, AboveTheRoutersLimitItFailsAlone) {
  SseStream stream;
  std::thread reader([&] {
    stream = cluster_->Stream(
        key_, ChatBody(R"(,"stream":true,"max_tokens":400,"x_sim":{"tokens":400,"token_ms":10})"));
  });
  EXPECT_TRUE(engine_->WaitFor([](const EngineSim& engine) { return engine.running() > 0; }));
  const ApiKey other = cluster_->NewCustomer(kUsd);
  ExpectError(Chat(other, "refused", 75 * kMiB), 400, "bad_request", "invalid_request_error");
  EXPECT_EQ(BodyAtEngine("refused"), 0u);
  EXPECT_EQ(Spent(other), 0);
  reader.join();
  EXPECT_EQ(stream.head.status, 200);
  EXPECT_TRUE(stream.complete) << "the stream on the same link continues";
}

// Peak of the resident memory of a process since its start, in bytes.
size_t PeakBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

TEST_P(LargeBodyTest, AStoppedRouterDelaysFewRequestsAndCostsNoMemory) {
  if (GetParam() != "tcp") GTEST_SKIP() << "the router is in the gateway's process";
  Process& router = cluster_->process("inference-router");
  Process& gateway = cluster_->process("gateway");
  ASSERT_EQ(Chat(key_, "before", 10).status, 200);
  router.Signal(SIGSTOP);
  std::atomic<int> refused{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 40; ++i) {
    callers.emplace_back([&] {
      const std::string body =
          ChatBody(",\"x_sim\":{\"padding\":\"" + std::string(4 * kMiB, 'x') + "\"}");
      for (int round = 0; round < 3; ++round) {
        const HttpResponse answer = Http(cluster_->port(), "POST", kChat, key_.headers(), body);
        refused += answer.status == 503 && answer.has_header("retry-after") ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(refused, 90) << "of 120: what was sent before the stop was noticed may wait longer";
  EXPECT_LT(PeakBytes(gateway.pid()), 1'000 * kMiB);
  router.Signal(SIGCONT);
  HttpResponse after;
  // Each attempt waits up to a second for the link.
  for (int attempt = 0; attempt < 40 && after.status != 200; ++attempt) {
    after = Chat(key_, "after", 10);
  }
  EXPECT_EQ(after.status, 200) << after.body << after.error;
}

}  // namespace
}  // namespace tollgate::test
