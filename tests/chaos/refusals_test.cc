// What callers were told equals the ledger (decision 52): two routers under load are stopped
// (SIGSTOP) until the gateway gives up on them, killed, and continued; billing is stopped and
// killed. A call that ended in an error is free, a complete answer is charged once, and nothing is
// booked that no caller saw.
//
// TOLLGATE_REFUSAL_ROUNDS sets the number of rounds (1 when not set), TOLLGATE_CHAOS_SEED the seed.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000;
constexpr int64_t kInputPico = 150'101;
constexpr int64_t kOutputPico = 600'307;
constexpr int kWorkers = 12;
constexpr int kCallsPerRound = 600;
// Longer than the gateway's keepalive takes to give up on a router (10 s and 5 s), and so short
// that the router wakes up while another one works on its requests.
constexpr int64_t kStopMs = 16'500;
// As long as billing may be unreachable for callers to get a 503.
constexpr int64_t kBillingStopMs = 3'500;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

// A call of a customer of its own, so that its charge can be read from the balance.
struct Call {
  ApiKey key;
  std::string tag;
  bool streamed = false;
  int status = 0;
  std::string error;
  bool complete = false;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t seen_tokens = 0;
};

class RefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.routers = 2;
    options.hold_ttl_seconds = 25;
    options.catalog = DefaultCatalog({engine_.base_url()}, "0.150101", "0.600307");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  void MakeCalls(size_t count);
  void Work();
  void Run(Call& call, int delay_ms, int tokens);
  // Until this many more calls have ended well.
  void Serve(int64_t complete);
  void Stop(const std::string& name, int64_t ms);
  void Kill(const std::string& name);
  void Check(const Call& call);

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Call> calls_;
  std::vector<std::thread> workers_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> complete_{0};
  std::atomic<bool> stop_{false};
};

void RefusalsTest::MakeCalls(size_t count) {
  calls_.resize(count);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&] {
      for (size_t index; (index = next.fetch_add(1)) < count;) {
        calls_[index].key = cluster_->NewCustomer(kCredit);
        calls_[index].tag = "refusal-" + std::to_string(index);
        calls_[index].streamed = index % 2 == 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void RefusalsTest::Work() {
  while (!stop_) {
    const size_t index = next_.fetch_add(1);
    if (index >= calls_.size()) return;
    // Some without output for long, which a fault hits before they have begun.
    Run(calls_[index], index % 3 == 0 ? 2'000 : 100, 100 + static_cast<int>(index * 37 % 200));
  }
}

void RefusalsTest::Run(Call& call, int delay_ms, int tokens) {
  const std::string sim = R"("x_sim":{"delay_ms":)" + std::to_string(delay_ms) +
                          R"(,"token_ms":5,"tokens":)" + std::to_string(tokens) + R"(,"tag":")" +
                          call.tag + R"("}})";
  const std::string body =
      R"({"model":"sim/model","messages":[{"role":"user","content":"refusals"}],)";
  Json usage;
  if (call.streamed) {
    const SseStream stream = HttpStream(
        cluster_->port(), "/v1/chat/completions", call.key.headers(),
        body + R"("stream":true,"stream_options":{"include_usage":true},)" + sim, 60'000);
    call.status = stream.head.status;
    call.error = stream.head.error;
    call.complete = stream.done();
    usage = stream.Usage();
    for (const SseEvent& event : stream.events) {
      const Json chunk = event.json();
      call.seen_tokens += chunk["choices"][0]["delta"]["content"].str().empty() ? 0 : 1;
    }
  } else {
    const HttpResponse answer = Http(cluster_->port(), "POST", "/v1/chat/completions",
                                     call.key.headers(), body + sim, 60'000);
    call.status = answer.status;
    call.error = answer.error;
    call.complete = answer.status == 200;
    if (call.complete) usage = answer.json()["usage"];
  }
  call.prompt_tokens = usage["prompt_tokens"].integer();
  call.completion_tokens = usage["completion_tokens"].integer();
  if (call.status != 200) SleepMs(50);  // refusals are immediate: no busy loop
  if (call.complete) ++complete_;
}

void RefusalsTest::Serve(int64_t complete) {
  const int64_t before = complete_;
  EXPECT_TRUE(WaitUntil([&] { return complete_ >= before + complete; }, 20'000));
  // Engines work for most callers: streamed answers, and others, that have begun.
  EXPECT_TRUE(WaitUntil([&] { return engine_.running() >= kWorkers - 2; }, 10'000));
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

void RefusalsTest::Check(const Call& call) {
  SCOPED_TRACE(call.tag + " of " + call.key.workspace_id +
               (call.streamed ? " streamed" : " whole") + ", status " +
               std::to_string(call.status) + " " + call.error);
  const std::set<int> kExpected = {200, 429, 500, 502, 503};
  EXPECT_TRUE(kExpected.contains(call.status)) << "the gateway always answers";
  ASSERT_TRUE(cluster_->WaitIdle(call.key.workspace_id, 60'000)) << "a hold outlived its time";
  const auto charged = [&]() -> int64_t {
    const auto balance = cluster_->Balance(call.key.workspace_id);
    return balance ? kCredit - balance->available : -1;
  };
  const auto cost = [](int64_t prompt, int64_t completion) {
    return (prompt * kInputPico + completion * kOutputPico) / 1000;
  };
  if (call.complete) {
    // A settlement may wait in an outbox.
    EXPECT_TRUE(WaitUntil(
        [&] { return charged() == cost(call.prompt_tokens, call.completion_tokens); }, 15'000))
        << charged() << " for " << call.prompt_tokens << " and " << call.completion_tokens;
  } else if (call.seen_tokens == 0) {
    // The refusal may still be on its way.
    EXPECT_TRUE(WaitUntil([&] { return charged() == 0; }, 15'000))
        << "charged " << charged() << " for an error";
  } else {
    EXPECT_GE(charged(), cost(call.prompt_tokens, call.seen_tokens)) << "delivered output is paid";
  }
}

TEST_F(RefusalsTest, CallersAreToldWhatTheLedgerSays) {
  const int64_t rounds = FromEnvironment("TOLLGATE_REFUSAL_ROUNDS", 1);
  std::mt19937 random(static_cast<uint32_t>(FromEnvironment("TOLLGATE_CHAOS_SEED", 1)));
  MakeCalls(static_cast<size_t>(rounds) * kCallsPerRound);
  for (int i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { Work(); });
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
  stop_ = true;
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  const size_t begun = std::min(next_.load(), calls_.size());
  std::map<std::string, int> seen;
  for (size_t i = 0; i < begun; ++i) {
    Check(calls_[i]);
    ++seen[calls_[i].complete           ? "complete"
           : calls_[i].status != 200    ? "refused"
           : calls_[i].seen_tokens == 0 ? "broken before output"
                                        : "broken after output"];
  }
  EXPECT_GT(seen["complete"], 40);
  EXPECT_GT(seen["refused"], 0) << "nothing was shown";
  const std::string metrics = Http(cluster_->admin_port("gateway"), "GET", "/metrics", {}, "").body;
  EXPECT_NE(metrics.find("tollgate_gateway_moves_total{result=\"moved\"}"), std::string::npos);
  EXPECT_EQ(metrics.find("tollgate_gateway_moves_total{result=\"moved\"} 0\n"), std::string::npos)
      << "no request was moved to the other router";
  const std::string billing = Http(cluster_->admin_port("billing"), "GET", "/metrics", {}, "").body;
  EXPECT_NE(billing.find("tollgate_billing_dead_letters_open 0\n"), std::string::npos)
      << "what a refusal or another try has closed is no evidence of a lost charge";
  const LedgerCheck check = cluster_->VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
  for (const auto& [what, count] : seen) std::fprintf(stderr, "%s: %d\n", what.c_str(), count);
}

}  // namespace
}  // namespace tollgate::test
