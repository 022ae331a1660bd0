// A hold lives as long as its router works on the request, from admission on, and an outage of the
// ledger is not reported as a lack of credit (decision 41). With the real ledger.
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr char kPath[] = "/v1/chat/completions";
constexpr int64_t kUsd = 1'000'000'000;
constexpr int64_t kOutputNano = 3'000;  // per token
constexpr int64_t kSliceTokens = 500;
// Silent before the head for longer than a hold lives without a heartbeat, with more tokens than
// the first slice covers. The caller does not stream and the hold covers the answer, so the engine
// is asked for a whole answer.
constexpr char kWhole[] =
    R"(,"max_tokens":400,"x_sim":{"late_headers":true,"delay_ms":14000,"tokens":400}})";
constexpr char kLateHead[] = R"(,"x_sim":{"late_headers":true,"delay_ms":14000,"tokens":6000}})";

std::string Body(const std::string& more) {
  return R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}])" + more;
}

class HoldLifeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.hold_ttl_seconds = 5;
    options.slice_tokens = kSliceTokens;
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

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(HoldLifeTest, CreditStaysHeldUntilTheHeadOfTheEngineArrives) {
  const ApiKey streamed = cluster_->NewCustomer(kUsd);
  const ApiKey whole = cluster_->NewCustomer(kUsd);
  const ApiKey bounded = cluster_->NewCustomer(kUsd);
  auto stream = std::async(std::launch::async, [&] {
    return HttpStream(cluster_->port(), kPath, streamed.headers(),
                      Body(std::string(R"(,"stream":true)") + kLateHead), 30'000);
  });
  auto answer =
      std::async(std::launch::async, [&] { return cluster_->Post(whole, kPath, Body(kLateHead)); });
  auto bounded_answer =
      std::async(std::launch::async, [&] { return cluster_->Post(bounded, kPath, Body(kWhole)); });
  ASSERT_TRUE(WaitUntil([&] { return engine_.running() == 3; }, 5'000));
  const int64_t begun_us = MonotonicUs();
  // Longer than the time to live plus the second within which the ledger finds expired holds.
  while (MonotonicUs() - begun_us < 7'500'000) {
    for (const ApiKey* key : {&streamed, &whole, &bounded}) {
      const auto balance = cluster_->Balance(key->workspace_id);
      ASSERT_TRUE(balance);
      ASSERT_EQ(balance->open_holds, 1) << "the hold of a running request has expired";
      ASSERT_GT(balance->held, 0);
    }
    SleepMs(100);
  }
  const SseStream events = stream.get();
  EXPECT_TRUE(events.done());
  EXPECT_EQ(events.FinishReason(), "stop") << "a caller with credit was cut";
  const HttpResponse response = answer.get();
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.json()["choices"][0]["finish_reason"].str(), "stop");
  EXPECT_EQ(response.json()["usage"]["completion_tokens"].integer(), 6000);
  const HttpResponse made_whole = bounded_answer.get();
  ASSERT_EQ(made_whole.status, 200) << made_whole.body;
  EXPECT_EQ(made_whole.json()["usage"]["completion_tokens"].integer(), 400);
  if (EnginesAlwaysStream()) return;
  int64_t asked_whole = 0;
  for (const SimRequest& request : engine_.requests()) asked_whole += request.stream ? 0 : 1;
  EXPECT_EQ(asked_whole, 1);
}

TEST_F(HoldLifeTest, AnOutageOfTheLedgerCutsNoStreamOfACallerWithCredit) {
  const ApiKey key = cluster_->NewCustomer(kUsd);
  // A slice lasts a second, the outage five.
  auto stream = std::async(std::launch::async, [&] {
    return HttpStream(cluster_->port(), kPath, key.headers(),
                      Body(R"(,"stream":true,"x_sim":{"token_ms":2,"tokens":4000}})"), 30'000);
  });
  ASSERT_TRUE(WaitUntil([&] { return engine_.running() == 1; }, 5'000));
  ASSERT_TRUE(WaitUntil(
      [&] {
        const auto balance = cluster_->Balance(key.workspace_id);
        return balance && balance->held > 10 * kSliceTokens * kOutputNano;
      },
      5'000))
      << "a slice covers a minute at the observed rate";
  cluster_->process("billing").Signal(SIGSTOP);
  SleepMs(5'000);
  cluster_->process("billing").Signal(SIGCONT);
  const SseStream events = stream.get();
  EXPECT_TRUE(events.done());
  EXPECT_EQ(events.FinishReason(), "stop");
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id));
}

}  // namespace
}  // namespace tollgate::test
