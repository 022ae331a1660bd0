// The product survives engines that fail at random: they are killed, stopped, slowed down, garbled
// and restarted under load. Every caller gets a whole answer, an error of the catalog or a failure
// in the stream, in time: never a missing response, never an engine's own text, never text of two
// engines joined. Afterwards the ledger is exact and every counter of work is zero. See
// docs/design/failures.md row 11 and decisions 7, 22, 23, 25, 52.
//
// TOLLGATE_ENGINE_FAULTS_SECONDS sets the time of the faults (5 when not set), and
// TOLLGATE_ENGINE_FAULTS_SEED the seed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/load.h"
#include "tests/engine_faults/books.h"
#include "tests/engine_faults/callers.h"
#include "tests/engine_faults/engines.h"
#include "tests/engine_faults/garbles.h"
#include "tests/engine_faults/schedule.h"
#include "tests/support/cluster.h"
#include "tests/support/metrics.h"

namespace tollgate::test {
namespace {

constexpr int kPoolEngines = 4;
constexpr int kHoldTtlSeconds = 20;
constexpr int kKeepAliveSeconds = 2;
constexpr int kSilenceSeconds = 3;
constexpr int kAnswerSeconds = 8;
constexpr int kQueueSeconds = 2;
// Time that a loaded machine may add; more in a short run, which shares the machine.
const int64_t kSlackUs =
    std::getenv("TOLLGATE_ENGINE_FAULTS_SECONDS") != nullptr ? 6'000'000 : 25'000'000;
// A stream sends comments from here on until an engine's first event (decision 25).
const int64_t kLongestWaitUs = (kKeepAliveSeconds + kSilenceSeconds) * 1'000'000 + kSlackUs;
// Waiting for a slot, then one engine, then another one.
const int64_t kSlowestUs = (kQueueSeconds + 2 * kAnswerSeconds) * 1'000'000 + kSlackUs;
// Time from the end of the faults until every engine gets requests again.
constexpr int64_t kRepairMs = 10'000;
constexpr int64_t kIdleMs = 15'000;
constexpr double kMoreFiles = 150;  // connections that are kept

// Two pools: one of several engines, one of a single engine.
std::string CatalogOf(const std::vector<std::unique_ptr<EngineProcess>>& engines) {
  const auto model = [](const std::string& id, const std::string& capabilities,
                        const std::string& pool) {
    return "  - id: " + id +
           "\n    name: Simulated\n    context_window: 131072\n    max_output_tokens: 65536\n"
           "    input_usd_per_million: \"" +
           Load::kInputPrice + "\"\n    output_usd_per_million: \"" + Load::kOutputPrice +
           "\"\n    capabilities: [" + capabilities +
           "]\n    engine_model: sim/model\n    pool: " + pool + "\n";
  };
  std::string text = "models:\n" + model("sim/model", "chat, tools, reasoning", "main") +
                     model("sim/text", "completion", "main") +
                     model("sim/embed", "embedding", "main") +
                     model("sim/lone", "chat, tools, reasoning", "lone") + "pools:\n";
  for (size_t i = 0; i < engines.size(); ++i) {
    if (i == 0) text += "  - name: main\n    engines:\n";
    if (i == kPoolEngines) text += "  - name: lone\n    engines:\n";
    text += "      - id: " + engines[i]->name() +
            "\n        kind: vllm\n        base_url: " + engines[i]->url() +
            "\n        max_concurrency: 6\n";
  }
  return text;
}

class EngineFaultsTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (int i = 1; i <= kPoolEngines + 1; ++i) {
      engines_.push_back(std::make_unique<EngineProcess>("e" + std::to_string(i), folder_.path()));
      ASSERT_TRUE(engines_.back()->Start());
    }
    ClusterOptions options;
    options.all_in_one = GetParam();
    options.routers = 2;
    options.hold_ttl_seconds = kHoldTtlSeconds;
    options.health_check_timeout_seconds = 0;  // the product's: engines that drip are found
    options.idle_timeout_seconds = kSilenceSeconds;
    options.keep_alive_seconds = kKeepAliveSeconds;
    options.router_settings = {"answer_timeout_seconds: " + std::to_string(kAnswerSeconds),
                               "queue_seconds: " + std::to_string(kQueueSeconds)};
    if (Hedges()) options.router_settings.emplace_back("hedge_after_ms: 100");
    options.catalog = CatalogOf(engines_);
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    ASSERT_TRUE(WaitUntil([&] { return EnginesAvailable(); }, 10'000, 50));
    callers_ = std::make_unique<Callers>(*cluster_, seed_);
  }
  void TearDown() override {
    if (callers_) callers_->Stop();
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  double Sum(const std::string& name) { return SumOfMetric(*cluster_, name).value_or(-1); }
  // One of the two systems hedges (asks a second engine as well).
  static bool Hedges() { return !GetParam(); }
  double Routers() const { return GetParam() ? 1 : 2; }
  bool EnginesAvailable() {
    return Sum("tollgate_router_engines_available") ==
           Routers() * static_cast<double>(engines_.size());
  }
  void ExpectIdle();

  const int64_t seconds_ = FromEnvironment("TOLLGATE_ENGINE_FAULTS_SECONDS", 5);
  const int64_t seed_ = FromEnvironment("TOLLGATE_ENGINE_FAULTS_SEED", 1);
  TempDir folder_;
  std::vector<std::unique_ptr<EngineProcess>> engines_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Callers> callers_;
};

INSTANTIATE_TEST_SUITE_P(Systems, EngineFaultsTest, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "allinone" : "tcp"; });

// No counter of work is left above zero.
void EngineFaultsTest::ExpectIdle() {
  EXPECT_EQ(WaitWithoutWork(*cluster_, kIdleMs), "");
  for (const auto& engine : engines_) {
    EXPECT_TRUE(WaitUntil([&] { return engine->Running() == 0; }, kIdleMs, 20))
        << engine->name() << " generates for a caller that left";
  }
}

TEST_P(EngineFaultsTest, EveryCallerGetsAnAnswerAnErrorOrAFailureInTheStream) {
  std::fprintf(stderr, "seed %lld\n", static_cast<long long>(seed_));
  callers_->AskEverything();
  const double files = Sum("process_open_fds");
  FaultSchedule schedule(engines_, seed_);
  callers_->Start();
  schedule.Run(seconds_ * 1000);
  ASSERT_TRUE(schedule.Repair()) << "an engine does not start";
  const int64_t repaired_us = MonotonicUs();
  EXPECT_TRUE(WaitUntil([&] { return EnginesAvailable(); }, kRepairMs, 50))
      << "an engine that is back gets no requests";
  const int64_t available_us = MonotonicUs() - repaired_us;
  callers_->Stop();
  const size_t faulty = callers_->calls().size();
  callers_->AskEverything();
  for (size_t i = faulty; i < callers_->calls().size(); ++i) {
    const FaultCall& call = callers_->calls()[i];
    EXPECT_EQ(call.verdict.end, Verdict::End::kWhole)
        << call.tag << " failed with healthy engines: " << call.verdict.status << " "
        << call.verdict.code;
  }
  ExpectIdle();
  EXPECT_LE(Sum("process_open_fds"), files + kMoreFiles) << "connections are not closed";

  const Journals journals = ReadJournals(engines_);
  const FaultFigures figures = CompareBooks(*cluster_, *callers_, journals, kHoldTtlSeconds);
  EXPECT_LE(figures.longest_wait_us, kLongestWaitUs) << "a stream was silent";
  EXPECT_LE(figures.slowest_us, kSlowestUs);
  EXPECT_GT(figures.whole, 0);
  if (seconds_ >= 30) {  // a run of a few seconds need not see each fault
    EXPECT_GT(figures.refused, 0) << "the run did not contain the case";
    EXPECT_GT(figures.failed, 0) << "the run did not contain the case";
    EXPECT_GT(figures.retried, 0) << "the run did not contain the case";
    if (Hedges()) {
      EXPECT_GT(Sum("tollgate_router_hedges_total"), 0);
    }
  }
  int64_t drawn = 0;
  for (const auto& [name, times] : journals.faults) drawn += times;
  if (seconds_ >= 120) {
    for (const Json& garble : Garbles()) {
      EXPECT_GT(journals.faults.count(garble["fault"].str()), 0u) << garble["fault"].str();
    }
  }
  for (const auto& [error, times] : figures.errors) {
    std::fprintf(stderr, "%lld of %s\n", static_cast<long long>(times), error.c_str());
  }
  const FaultCounts& counts = schedule.counts();
  std::printf(
      "ENGINE_FAULTS | %s | %lld | %lld | %lld, %lld, %lld, %lld, %lld | %lld | %zu | %lld | %lld "
      "| "
      "%lld | %lld | %lld | %.1f s | %.1f s | %.1f s | %lld |\n",
      GetParam() ? "all-in-one" : "cluster", static_cast<long long>(seed_),
      static_cast<long long>(seconds_), static_cast<long long>(counts.kills),
      static_cast<long long>(counts.stops), static_cast<long long>(counts.slow),
      static_cast<long long>(counts.garbled), static_cast<long long>(counts.unhealthy),
      static_cast<long long>(drawn), callers_->calls().size(),
      static_cast<long long>(figures.whole), static_cast<long long>(figures.refused),
      static_cast<long long>(figures.failed), static_cast<long long>(figures.left),
      static_cast<long long>(figures.retried), static_cast<double>(figures.longest_wait_us) / 1e6,
      static_cast<double>(figures.slowest_us) / 1e6, static_cast<double>(available_us) / 1e6,
      static_cast<long long>(figures.entries));
}

}  // namespace
}  // namespace tollgate::test
