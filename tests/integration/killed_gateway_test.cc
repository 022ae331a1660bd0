// When a gateway is killed, callers do not pay for undelivered output, and pay for delivered output
// (decisions 7 and 52). The router notices at once, so no hold has to expire.
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr char kPath[] = "/v1/chat/completions";
constexpr int64_t kUsd = 1'000'000'000;
constexpr int64_t kPromptNano = 1'000, kOutputNano = 3'000;  // per token

std::string Body(const std::string& more) {
  return R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}],)" + more +
         "}";
}

class KilledGatewayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.hold_ttl_seconds = 120;  // nothing below ends by expiry
    options.catalog = DefaultCatalog({engine_.base_url()});
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_TRUE(cluster_->VerifyLedger().ok);
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  int64_t Charged(const ApiKey& key) {
    EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id, 10'000)) << "its hold is still open";
    const auto balance = cluster_->Balance(key.workspace_id);
    return balance ? kUsd - balance->available : -1;
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(KilledGatewayTest, WhatNoCallerGotIsFreeAndWhatWasDeliveredIsPaid) {
  const ApiKey silent = cluster_->NewCustomer(kUsd), whole = cluster_->NewCustomer(kUsd),
               bounded = cluster_->NewCustomer(kUsd), streamed = cluster_->NewCustomer(kUsd);
  const auto post = [&](const ApiKey& key, const std::string& more) {
    return std::async(std::launch::async, [this, key, more] {
      return HttpStream(cluster_->port(), kPath, key.headers(), Body(more), 30'000);
    });
  };
  auto before_output = post(silent, R"("stream":true,"x_sim":{"delay_ms":60000,"tag":"silent"})");
  auto not_streamed = post(whole, R"("x_sim":{"token_ms":5,"tokens":12000,"tag":"whole"})");
  // The engine is asked for a whole answer.
  auto made_whole =
      post(bounded, R"("max_tokens":2000,"x_sim":{"token_ms":5,"tokens":2000,"tag":"bounded"})");
  auto with_output =
      post(streamed, R"("stream":true,"x_sim":{"token_ms":5,"tokens":12000,"tag":"streamed"})");
  const auto generated = [&](const std::string& tag) -> int64_t {
    for (const SimRequest& request : engine_.requests()) {
      if (request.tag == tag) return request.tokens_generated;
    }
    return -1;
  };
  ASSERT_TRUE(engine_.WaitFor([&](const EngineSim&) {
    return generated("silent") == 0 && generated("bounded") >= 0 && generated("whole") > 50 &&
           generated("streamed") > 50;
  }));
  cluster_->process("gateway").Kill();
  (void)before_output.get();
  (void)not_streamed.get();
  (void)made_whole.get();
  const SseStream seen = with_output.get();
  EXPECT_FALSE(seen.done());
  EXPECT_TRUE(engine_.WaitFor([](const EngineSim& sim) { return sim.running() == 0; }));
  for (const SimRequest& request : engine_.requests()) EXPECT_TRUE(request.aborted) << request.tag;
  EXPECT_EQ(Charged(silent), 0);
  EXPECT_EQ(Charged(whole), 0);
  EXPECT_EQ(Charged(bounded), 0);
  int64_t tokens = 0;
  for (const SseEvent& event : seen.events) {
    tokens += event.json()["choices"][0]["delta"]["content"].str().empty() ? 0 : 1;
  }
  EXPECT_GT(tokens, 0);
  const int64_t charged = Charged(streamed);
  EXPECT_GT(charged, tokens * kOutputNano) << "delivered output and the prompt are paid";
  EXPECT_LE(charged, 100 * kPromptNano + generated("streamed") * kOutputNano);
  EXPECT_EQ(cluster_->Restart("gateway"), "");
}

}  // namespace
}  // namespace tollgate::test
