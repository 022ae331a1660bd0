// What callers received equals the ledger (decision 52): two routers under load are stopped
// (SIGSTOP) until the gateway gives up on them, killed, and continued; billing is stopped and
// killed. The gateway keeps running, so that every caller gets an answer, and every call that ended
// in an error is free.
//
// TOLLGATE_REFUSAL_ROUNDS sets the number of rounds (1 when not set), TOLLGATE_CHAOS_SEED the seed.
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <memory>
#include <random>
#include <string>

#include "tests/chaos/comparison.h"
#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/tcp_proxy.h"

namespace tollgate::test {
namespace {

constexpr int kHoldTtlSeconds = 25;
// Longer than the gateway takes to give up on a router (Link::kGiveUpMs and a second before), and
// short enough for the router to wake up while another one works on its requests.
constexpr int64_t kStopMs = 6'000;
// The time for which billing may be unreachable before callers get a 503.
constexpr int64_t kBillingStopMs = 3'500;

class RefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.routers = 2;
    options.hold_ttl_seconds = kHoldTtlSeconds;
    options.catalog = DefaultCatalog({engine_.base_url()}, Load::kInputPrice, Load::kOutputPrice);
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    load_ = std::make_unique<Load>(*cluster_, "refusals");
  }
  void TearDown() override {
    if (load_) load_->Stop();
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  // Waits until this many more calls have ended well.
  void Serve(int64_t complete);
  void Stop(const std::string& name, int64_t ms);
  void Kill(const std::string& name);

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Load> load_;
};

void RefusalsTest::Serve(int64_t complete) {
  const int64_t before = load_->complete();
  EXPECT_TRUE(WaitUntil([&] { return load_->complete() >= before + complete; }, 20'000));
  // Engines work for most callers: streamed and whole answers that have begun.
  EXPECT_TRUE(WaitUntil([&] { return engine_.running() >= Load::kWorkers - 2; }, 10'000));
}

void RefusalsTest::Stop(const std::string& name, int64_t ms) {
  Serve(3);
  cluster_->process(name).Signal(SIGSTOP);
  SleepMs(ms);
  cluster_->process(name).Signal(SIGCONT);
}

void RefusalsTest::Kill(const std::string& name) {
  Serve(3);
  cluster_->process(name).Kill();
  SleepMs(200);
  ASSERT_EQ(cluster_->Restart(name), "");
}

TEST_F(RefusalsTest, CallersAreToldWhatTheLedgerSays) {
  const int64_t rounds = FromEnvironment("TOLLGATE_REFUSAL_ROUNDS", 1);
  std::mt19937 random(static_cast<uint32_t>(FromEnvironment("TOLLGATE_CHAOS_SEED", 1)));
  load_->Start();
  for (int64_t round = 0; round < rounds && !HasFailure(); ++round) {
    const bool swap = random() % 2 == 0;
    const std::string one = swap ? "inference-router-2" : "inference-router";
    const std::string two = swap ? "inference-router" : "inference-router-2";
    Stop(one, kStopMs);
    Kill(two);
    Kill(one);
    Stop("billing", kBillingStopMs);
    Kill("billing");
  }
  Serve(20);
  load_->Stop();
  const Figures figures = CompareWithLedger(*cluster_, engine_, *load_, kHoldTtlSeconds);
  EXPECT_GT(figures.complete, 40);
  EXPECT_GT(figures.refused, 0) << "the run did not contain the case";
  EXPECT_EQ(figures.no_answer, 0) << "the gateway always answers";
  const std::string metrics = Http(cluster_->admin_port("gateway"), "GET", "/metrics", {}, "").body;
  EXPECT_NE(metrics.find("tollgate_gateway_moves_total{result=\"moved\"}"), std::string::npos);
  EXPECT_EQ(metrics.find("tollgate_gateway_moves_total{result=\"moved\"} 0\n"), std::string::npos)
      << "no request was moved to the other router";
  std::fprintf(stderr, "%lld complete, %lld refused, %lld cut, %lld holds expired\n",
               static_cast<long long>(figures.complete), static_cast<long long>(figures.refused),
               static_cast<long long>(figures.cut), static_cast<long long>(figures.expired));
}

// The router has charged a call whose answer never arrives: its caller gets an error, so the
// gateway's void must undo the charge.
TEST(ChargedRefusalTest, ACallThatWasChargedBeforeItsAnswerWasLostIsFree) {
  constexpr int64_t kCredit = 1'000'000'000;
  EngineSim engine;
  ASSERT_TRUE(engine.Start());
  TcpProxy link;
  ClusterOptions options;
  options.all_in_one = false;
  options.hold_ttl_seconds = 120;  // nothing below ends by expiry
  options.catalog = DefaultCatalog({engine.base_url()});
  options.way_to_router = [&](const std::string& router) { return link.Start(router); };
  Cluster cluster(options);
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(kCredit);
  const auto credit = [&] {
    const auto balance = cluster.Balance(key.workspace_id);
    return balance ? balance->posted : -1;
  };

  auto call = std::async(std::launch::async, [&] {
    return cluster.Post(key, "/v1/chat/completions",
                        R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}],)"
                        R"("x_sim":{"delay_ms":500,"tokens":20}})");
  });
  ASSERT_TRUE(engine.WaitFor([](const EngineSim& sim) { return sim.running() == 1; }));
  link.HoldAnswers();
  ASSERT_TRUE(WaitUntil([&] { return credit() < kCredit; }, 10'000)) << "the router charges it";
  link.Cut();
  const HttpResponse answer = call.get();
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_TRUE(WaitUntil([&] { return credit() == kCredit; }, 10'000))
      << "charged for an error: " << kCredit - credit() << " nano-USD";
  EXPECT_TRUE(cluster.WaitIdle(key.workspace_id));
  EXPECT_TRUE(cluster.VerifyLedger().ok);
  EXPECT_EQ(cluster.StopOrderly(), "");
  if (::testing::Test::HasFailure()) std::fprintf(stderr, "%s\n", cluster.Logs().c_str());
}

}  // namespace
}  // namespace tollgate::test
