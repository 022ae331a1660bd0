// Repeated kill -9 of a random process of the TCP cluster, in mid-stream under load; afterwards the
// ledger must agree with what the simulated engine produced, request by request. Once with SQLite
// as the store, once with PostgreSQL, whose whole server is killed as well. See
// docs/design/ledger.md 5 and 6.
//
// TOLLGATE_CHAOS_KILLS sets the number of kills of each (a few when not set, 50 for the full run),
// TOLLGATE_CHAOS_SEED the seed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000;
constexpr int64_t kInputPico = 150'101;
constexpr int64_t kOutputPico = 600'307;
constexpr int kWorkers = 6;

int64_t Charge(int64_t prompt, int64_t completion) {
  return (prompt * kInputPico + completion * kOutputPico) / 1000;
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

// One request by a customer of its own, so that its charge can be read from the balance.
struct Attempt {
  ApiKey key;
  std::string tag;
  int status = 0;
  bool complete = false;  // the client saw [DONE]
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t seen_tokens = 0;
};

class Load {
 public:
  Load(Cluster& cluster, std::vector<Attempt> attempts)
      : cluster_(cluster), attempts_(std::move(attempts)) {
    for (int i = 0; i < kWorkers; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Load() { Stop(); }
  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  int64_t complete() const { return complete_; }
  // Requests that were sent.
  std::vector<Attempt> Begun() const {
    return {attempts_.begin(),
            attempts_.begin() + static_cast<int64_t>(std::min(next_.load(), attempts_.size()))};
  }

 private:
  void Work() {
    while (!stop_) {
      const size_t index = next_.fetch_add(1);
      if (index >= attempts_.size()) return;
      Run(attempts_[index], 40 + static_cast<int>(index * 37 % 160));
    }
  }
  void Run(Attempt& attempt, int tokens) {
    const std::string body =
        R"({"model":"sim/model","messages":[{"role":"user","content":"chaos"}],"stream":true,"stream_options":{"include_usage":true},"x_sim":{"token_ms":5,"tokens":)" +
        std::to_string(tokens) + ",\"tag\":\"" + attempt.tag + "\"}}";
    SseStream stream;
    while (true) {
      stream =
          HttpStream(cluster_.port(), "/v1/chat/completions", attempt.key.headers(), body, 15'000);
      // Connection refused while the gateway restarts: nothing was sent, so this attempt is
      // repeated.
      if (!stream.head.error.starts_with("connect:") || stop_) break;
      SleepMs(10);
    }
    attempt.status = stream.head.status;
    attempt.complete = stream.done();
    const Json usage = stream.Usage();
    attempt.prompt_tokens = usage["prompt_tokens"].integer();
    attempt.completion_tokens = usage["completion_tokens"].integer();
    for (const SseEvent& event : stream.events) {
      const Json chunk = event.json();
      attempt.seen_tokens += chunk["choices"][0]["delta"]["content"].str().empty() ? 0 : 1;
    }
    // Refusals are immediate: avoid a busy loop while a service is unreachable.
    if (stream.head.status != 200) SleepMs(50);
    if (attempt.complete) ++complete_;
  }

  Cluster& cluster_;
  std::vector<Attempt> attempts_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> complete_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

class ChaosTest : public ::testing::Test {
 protected:
  void SetUp() override { Start({}); }
  void Start(ClusterOptions options) {
    ASSERT_TRUE(engine_.Start());
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()}, "0.150101", "0.600307");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    EXPECT_EQ(cluster_->StopOrderly(), "") << "no process may crash except those killed";
    if (HasFailure() && cluster_) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  bool Serves(const ApiKey& key) {
    return cluster_
               ->Post(
                   key, "/v1/chat/completions",
                   R"({"model":"sim/model","messages":[{"role":"user","content":"probe"}],"x_sim":{"tokens":1}})")
               .status == 200;
  }
  // The engine's requests by tag.
  std::map<std::string, std::vector<SimRequest>> EngineView() const {
    std::map<std::string, std::vector<SimRequest>> view;
    for (SimRequest& request : engine_.requests()) view[request.tag].push_back(std::move(request));
    return view;
  }
  void CheckCharge(const Attempt& attempt, const std::vector<SimRequest>& produced);
  // Each with its own customer.
  std::vector<Attempt> MakeAttempts(size_t count);
  // Every process once, in random order, before any is killed a second time.
  virtual std::string Victim(int64_t kill, std::mt19937& random) {
    if (deck_.empty()) {
      deck_ = cluster_->process_names();
      std::shuffle(deck_.begin(), deck_.end(), random);
    }
    std::string name = deck_.back();
    deck_.pop_back();
    return name;
  }
  virtual void Kill(const std::string& name) { cluster_->process(name).Kill(); }
  virtual std::string Restart(const std::string& name) { return cluster_->Restart(name); }
  void KillUnderLoad(int64_t kills);
  void OneKill(int64_t kill, Load& load, const ApiKey& probe, std::mt19937& random);
  void CheckLedger(Load& load, int64_t kills);

  std::vector<std::string> deck_;
  std::vector<double> seconds_;  // from each restart until the cluster served again
  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

void ChaosTest::CheckCharge(const Attempt& attempt, const std::vector<SimRequest>& produced) {
  SCOPED_TRACE(attempt.tag + " status " + std::to_string(attempt.status));
  ASSERT_TRUE(cluster_->WaitIdle(attempt.key.workspace_id, 30'000)) << "a hold was not released";
  const auto balance = cluster_->Balance(attempt.key.workspace_id);
  ASSERT_TRUE(balance);
  const int64_t charged = kCredit - balance->available;
  EXPECT_LE(produced.size(), 2u) << "one retry at most";
  int64_t most = 0;
  for (const SimRequest& request : produced) {
    most = std::max(most, Charge(request.prompt_tokens, request.tokens_generated));
  }
  EXPECT_GE(charged, 0);
  EXPECT_LE(charged, most) << "charged more than the engine produced";
  // Output that reached the client is charged, whichever process was killed (decision 7).
  if (attempt.seen_tokens > 0 && !produced.empty()) {
    EXPECT_GE(charged, Charge(produced.front().prompt_tokens, attempt.seen_tokens))
        << "delivered output was not charged: " << attempt.seen_tokens << " tokens";
  }
  if (attempt.complete) {
    EXPECT_EQ(charged, Charge(attempt.prompt_tokens, attempt.completion_tokens))
        << "lost or charged twice";
  }
  // While dependencies are unreachable clients get retryable errors, never a client error.
  const std::set<int> kExpected = {0, 200, 429, 500, 502, 503};
  EXPECT_TRUE(kExpected.contains(attempt.status));
}

std::vector<Attempt> ChaosTest::MakeAttempts(size_t count) {
  std::vector<Attempt> attempts(count);
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&] {
      for (size_t index; (index = next.fetch_add(1)) < count;) {
        attempts[index].key = cluster_->NewCustomer(kCredit);
        attempts[index].tag = "chaos-" + std::to_string(index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Attempt& attempt : attempts) EXPECT_FALSE(attempt.key.secret.empty());
  return attempts;
}

void ChaosTest::OneKill(int64_t kill, Load& load, const ApiKey& probe, std::mt19937& random) {
  const int64_t before = load.complete();
  EXPECT_TRUE(WaitUntil([&] { return load.complete() >= before + 3; }, 20'000));
  ASSERT_TRUE(WaitUntil([&] { return engine_.running() >= 2; }, 20'000))
      << "the load did not start";
  SleepMs(static_cast<int64_t>(random() % 200));
  const std::string name = Victim(kill, random);
  SCOPED_TRACE("kill " + std::to_string(kill) + " of " + name);
  Kill(name);
  SleepMs(static_cast<int64_t>(random() % 400));
  // Measured from the restart, start-up included.
  const int64_t begun = MonotonicUs();
  ASSERT_EQ(Restart(name), "");
  const double started = static_cast<double>(MonotonicUs() - begun) / 1e6;
  EXPECT_TRUE(WaitUntil([&] { return Serves(probe); }, 10'000, 20)) << name;
  seconds_.push_back(static_cast<double>(MonotonicUs() - begun) / 1e6);
  EXPECT_LE(seconds_.back(), 10.0) << name;
  std::fprintf(stderr, "kill %lld of %s: serves again %.2f s after its restart (start-up %.2f s)\n",
               static_cast<long long>(kill + 1), name.c_str(), seconds_.back(), started);
}

void ChaosTest::CheckLedger(Load& load, int64_t kills) {
  int64_t complete = 0;
  int64_t broken = 0;
  auto produced = EngineView();
  for (const Attempt& attempt : load.Begun()) {
    CheckCharge(attempt, produced[attempt.tag]);
    (attempt.complete ? complete : broken) += 1;
  }
  EXPECT_GT(complete, kills);
  EXPECT_TRUE(WaitUntil([&] { return engine_.running() == 0; }, 5000))
      << "an engine request outlived its client";
  const LedgerCheck check = cluster_->VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
  EXPECT_GT(check.entries, 0);
  double sum = 0;
  for (const double one : seconds_) sum += one;
  std::fprintf(stderr,
               "%zu kills: served again after %.2f s on average, %.2f s at most; %lld requests "
               "complete, %lld broken or refused; %lld ledger entries verified\n",
               seconds_.size(), sum / static_cast<double>(seconds_.size()),
               *std::max_element(seconds_.begin(), seconds_.end()),
               static_cast<long long>(complete), static_cast<long long>(broken),
               static_cast<long long>(check.entries));
}

void ChaosTest::KillUnderLoad(int64_t kills) {
  const auto seed = static_cast<uint32_t>(FromEnvironment("TOLLGATE_CHAOS_SEED", 1));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const ApiKey probe = cluster_->NewCustomer(100 * kCredit);
  std::vector<Attempt> attempts = MakeAttempts(static_cast<size_t>(kills) * 60 + 60);
  ASSERT_TRUE(Serves(probe));
  Load load(*cluster_, std::move(attempts));
  for (int64_t kill = 0; kill < kills && !HasFailure(); ++kill) OneKill(kill, load, probe, random);
  load.Stop();
  ASSERT_FALSE(seconds_.empty());
  CheckLedger(load, kills);
}

TEST_F(ChaosTest, KillsOfAnyProcessNeitherLoseNorDuplicateCharges) {
  KillUnderLoad(FromEnvironment("TOLLGATE_CHAOS_KILLS", 7));
}

// Auth and billing on PostgreSQL; every third kill takes its whole server.
class ChaosOnPostgresTest : public ChaosTest {
 protected:
  void SetUp() override {
    postgres_ = testing::TestPostgres::Start();
    if (!postgres_) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    ClusterOptions options;
    options.auth_sql = postgres_->MakeDatabase("auth");
    options.billing_sql = postgres_->MakeDatabase("billing");
    // The data folder was created without fsync; sync now, or the first recovery would have to.
    sync();
    Start(options);
  }
  void TearDown() override {
    if (cluster_) ChaosTest::TearDown();
  }
  std::string Victim(int64_t kill, std::mt19937& random) override {
    return kill % 3 == 0 ? "postgres" : ChaosTest::Victim(kill, random);
  }
  void Kill(const std::string& name) override {
    name == "postgres" ? postgres_->Kill() : ChaosTest::Kill(name);
  }
  std::string Restart(const std::string& name) override {
    if (name != "postgres") return ChaosTest::Restart(name);
    return postgres_->Run() ? "" : "PostgreSQL does not start";
  }

  std::unique_ptr<testing::TestPostgres> postgres_;
};

TEST_F(ChaosOnPostgresTest, KillsOfAnyProcessOrTheDatabaseNeitherLoseNorDuplicateCharges) {
  KillUnderLoad(FromEnvironment("TOLLGATE_CHAOS_KILLS", 6));
}

TEST_F(ChaosTest, LeasesOfAKilledGatewayExpire) {
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
