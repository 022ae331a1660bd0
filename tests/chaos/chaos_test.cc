// What a killed or stopped process leaves behind for the other processes. Kills under load, with
// every charge compared, are in kills_test.cc.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000;

class ChaosTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()}, "0.150101", "0.600307");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    EXPECT_EQ(cluster_->StopOrderly(), "") << "no process may crash except those killed";
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  bool Serves(const ApiKey& key) {
    return cluster_
               ->Post(
                   key, "/v1/chat/completions",
                   R"({"model":"sim/model","messages":[{"role":"user","content":"probe"}],"x_sim":{"tokens":1}})")
               .status == 200;
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ChaosTest, SlotsOfAKilledGatewayExpire) {
  KeyOptions options;
  options.limits.concurrent_requests = 2;
  const ApiKey key = cluster_->NewCustomer(kCredit, options);
  const std::string body =
      R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],"stream":true,"x_sim":{"tokens":9,"hang_after_tokens":2}})";
  HttpConnection one(cluster_->port());
  HttpConnection two(cluster_->port());
  for (HttpConnection* connection : {&one, &two}) {
    connection->SendRequest("POST", "/v1/chat/completions", key.headers(), body);
    ASSERT_EQ(connection->ReadHead().status, 200);
  }
  EXPECT_FALSE(Serves(key)) << "both slots are in use";
  cluster_->process("gateway").Kill();
  EXPECT_TRUE(WaitUntil([&] { return engine_.running() == 0; }, 5000))
      << "the router aborts requests without a gateway";
  ASSERT_EQ(cluster_->Restart("gateway"), "");
  EXPECT_TRUE(WaitUntil([&] { return Serves(key); }, 12'000, 50)) << "lease_seconds is 5";
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id));
}

TEST_F(ChaosTest, WithBillingStoppedNewWorkIsRefusedAndNoChargeIsLost) {
  const ApiKey key = cluster_->NewCustomer(kCredit);
  ASSERT_TRUE(Serves(key));
  cluster_->process("billing").Signal(SIGSTOP);
  const HttpResponse answer =
      cluster_->Post(key, "/v1/chat/completions",
                     R"({"model":"sim/model","messages":[{"role":"user","content":"x"}]})");
  cluster_->process("billing").Signal(SIGCONT);
  EXPECT_EQ(answer.status, 503) << answer.body << answer.error;
  EXPECT_TRUE(WaitUntil([&] { return Serves(key); }, 10'000, 20));
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id)) << "the late hold is voided";
  EXPECT_TRUE(cluster_->VerifyLedger().ok);
}

}  // namespace
}  // namespace tollgate::test
