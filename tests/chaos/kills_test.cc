// Kills (SIGKILL) and stops (SIGSTOP) under load, on SQLite, PostgreSQL and Citus (where it is
// installed), with one and with two replicas of billing. Afterwards what every caller received must
// match the ledger and the engine (comparison.h). See docs/design/ledger.md 5 and 6.
//
// TOLLGATE_CHAOS_KILLS sets the number of faults of all parts together (a few of each when not
// set), TOLLGATE_CHAOS_SEED the seed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/comparison.h"
#include "tests/chaos/distribute.h"
#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/metrics.h"
#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

using testing::TestPostgres;

// Each round has its own cluster and seed, so that a failure is found soon and can be repeated.
constexpr int64_t kFaultsOfARound = 50;
constexpr int64_t kStopMs = 10'000;
constexpr int64_t kServesAgainMs = 10'000;
// Below and above the length of a stop.
constexpr int kHoldTtlSeconds[] = {6, 20};

// Victims that are not processes of the cluster: the whole server, its parent process, one of its
// sessions, a worker of Citus.
constexpr const char* kServer = "postgres";
constexpr const char* kWorkers[] = {"postgres worker 1", "postgres worker 2"};
constexpr const char* kParent = "postgres parent";
constexpr const char* kSession = "postgres session";

struct Part {
  std::string name;
  int64_t share;  // of 1,000 faults
  int64_t small;  // faults when no number is set
  bool stops = false;
  bool postgres = false;
  bool citus = false;
  // Rounds in which routers admit from leases on credit (docs/adr/0042). Leases end up to two
  // minutes after a loss, so such a round does not run in a short run.
  bool leases = false;
  int billings = 1;
  // Each victim once in random order, then again.
  std::vector<std::string> victims;
};

const Part kParts[] = {
    {.name = "sqlite",
     .share = 300,
     .small = 6,
     .victims = {"billing", "billing", "billing", "inference-router", "inference-router",
                 "inference-router-2", "inference-router-2", "gateway", "gateway", "gateway",
                 "auth", "ratelimit", "catalog", "dashboard"}},
    {.name = "leases",
     .share = 100,
     .small = 0,
     .leases = true,
     .victims = {"inference-router", "inference-router", "inference-router-2", "inference-router-2",
                 "billing", "gateway"}},
    {.name = "postgres",
     .share = 300,
     .small = 3,
     .postgres = true,
     .victims = {kServer, kServer, kServer, kSession, "billing", "billing", "billing",
                 "inference-router", "inference-router", "inference-router-2", "gateway", "gateway",
                 "auth"}},
    {.name = "replicas",
     .share = 200,
     .small = 2,
     .postgres = true,
     .billings = 2,
     .victims = {"billing", "billing", "billing-2", "billing-2", "inference-router",
                 "inference-router-2", "gateway", kServer, kSession}},
    {.name = "stops",
     .share = 200,
     .small = 2,
     .stops = true,
     .postgres = true,
     .billings = 2,
     .victims = {"billing", "billing", "billing-2", "billing-2", "inference-router",
                 "inference-router-2", "gateway", kServer, kParent, kSession}},
    {.name = "citus",
     .share = 300,
     .small = 2,
     .postgres = true,
     .citus = true,
     .billings = 2,
     .victims = {kWorkers[0], kWorkers[0], kWorkers[1], kWorkers[1], kServer, kServer, kSession,
                 "billing", "billing", "billing-2", "billing-2", "inference-router",
                 "inference-router-2", "gateway", "gateway"}},
};

void PrintTo(const Part& part, std::ostream* out) { *out << part.name; }

bool IsPostgres(const std::string& name) { return name.starts_with(kServer); }

class KillsTest : public ::testing::TestWithParam<Part> {
 protected:
  void Start(uint32_t seed, int64_t round);
  void Round(int64_t faults);
  void End();
  // The next victim, unrelated to this one.
  std::string Deal(const std::string& beside = "");
  // Waits until the load runs.
  void UnderLoad();
  void OneKill();
  // Stops one process; if there are two, stops another one meanwhile.
  void Stops(int64_t count);
  std::vector<pid_t> PidsOf(const std::string& name);
  // The server of a name for which IsPostgres holds.
  TestPostgres& ServerOf(const std::string& name);
  void Kill(const std::string& name, const std::vector<pid_t>& pids);
  // Restarts what was killed. The cluster must then serve again within 10 s, including the start of
  // its processes and excluding PostgreSQL's own recovery.
  void Recover(const std::vector<std::string>& killed, const std::string& after);
  void KeepLogs() const;
  void Report(uint32_t seed) const;

  std::mt19937 random_;
  std::unique_ptr<TestPostgres> postgres_;
  std::unique_ptr<EngineSim> engine_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Load> load_;
  int hold_ttl_seconds_ = 0;
  bool leases_ = false;
  std::string billing_sql_;
  std::string round_;
  std::vector<std::string> deck_;
  std::map<std::string, int64_t> faults_;  // by kind
  double slowest_s_ = 0;
  Figures figures_;
};

void KillsTest::Start(uint32_t seed, int64_t round) {
  round_ = GetParam().name + "-" + std::to_string(seed);
  random_.seed(seed);
  deck_.clear();
  engine_ = std::make_unique<EngineSim>();
  ASSERT_TRUE(engine_->Start());
  hold_ttl_seconds_ = kHoldTtlSeconds[round % 2];
  ClusterOptions options;
  options.all_in_one = false;
  options.routers = 2;
  options.billings = GetParam().billings;
  options.hold_ttl_seconds = hold_ttl_seconds_;
  options.catalog = DefaultCatalog({engine_->base_url()}, Load::kInputPrice, Load::kOutputPrice);
  if (GetParam().postgres) {
    options.auth_sql = postgres_->MakeDatabase("auth");
    options.billing_sql = billing_sql_ = postgres_->MakeDatabase("billing");
    // The data folder was created without fsync; sync now, so that the first recovery does not have
    // to.
    sync();
  }
  // On Citus in every second pair of rounds, one of each hold_ttl_seconds_.
  leases_ = GetParam().leases || (GetParam().citus && round % 4 >= 2);
  if (leases_) options.billing_settings = {"lease_above_requests_per_second: 1"};
  cluster_ = std::make_unique<Cluster>(options);
  ASSERT_EQ(cluster_->Start(), "");
  if (GetParam().citus) DistributeLedger(options.billing_sql, "--shards 8 --apply");
  load_ = std::make_unique<Load>(*cluster_, round_);
  ASSERT_TRUE(load_->Probe());
  load_->Start();
}

std::string KillsTest::Deal(const std::string& beside) {
  const auto other = [&](const std::string& name) {
    return name != beside && !(IsPostgres(name) && IsPostgres(beside));
  };
  if (std::none_of(deck_.begin(), deck_.end(), other)) {
    std::vector<std::string> more = GetParam().victims;
    std::shuffle(more.begin(), more.end(), random_);
    deck_.insert(deck_.end(), more.begin(), more.end());
  }
  const auto at = std::find_if(deck_.begin(), deck_.end(), other);
  std::string name = *at;
  deck_.erase(at);
  return name;
}

void KillsTest::UnderLoad() {
  const int64_t before = load_->complete();
  EXPECT_TRUE(WaitUntil([&] { return load_->complete() >= before + 6; }, 20'000));
  ASSERT_TRUE(WaitUntil([&] { return engine_->running() >= Load::kWorkers / 2; }, 20'000))
      << "there is no load";
  SleepMs(static_cast<int64_t>(random_() % 1'000));
}

TestPostgres& KillsTest::ServerOf(const std::string& name) {
  const auto* const worker = std::ranges::find(kWorkers, name);
  return worker == std::end(kWorkers) ? *postgres_
                                      : postgres_->worker(static_cast<int>(worker - kWorkers));
}

std::vector<pid_t> KillsTest::PidsOf(const std::string& name) {
  if (std::ranges::find(kWorkers, name) != std::end(kWorkers)) return {};  // Kill finds them itself
  if (name == kServer) return postgres_->Pids(TestPostgres::Part::kAll);
  if (name == kParent) return postgres_->Pids(TestPostgres::Part::kParent);
  if (name != kSession) return {cluster_->process(name).pid()};
  const std::vector<pid_t> sessions = postgres_->Pids(TestPostgres::Part::kSessions);
  if (sessions.empty()) return {};
  return {sessions[random_() % sessions.size()]};
}

void KillsTest::Kill(const std::string& name, const std::vector<pid_t>& pids) {
  if (name == kSession) {
    for (const pid_t pid : pids) postgres_->KillSession(pid);
  } else if (IsPostgres(name)) {
    ServerOf(name).Kill();
  } else {
    cluster_->process(name).Kill();
  }
}

void KillsTest::Recover(const std::vector<std::string>& killed, const std::string& after) {
  std::vector<std::string> processes;
  for (const std::string& name : killed) {
    if (!IsPostgres(name)) {
      processes.push_back(name);
    } else {
      ASSERT_TRUE(name == kSession ? postgres_->WaitReady() : ServerOf(name).Run());
    }
  }
  const int64_t begun_us = MonotonicUs();
  const auto seconds = [&] { return static_cast<double>(MonotonicUs() - begun_us) / 1e6; };
  if (!processes.empty()) ASSERT_EQ(cluster_->Restart(processes), "");
  EXPECT_TRUE(WaitUntil([&] { return load_->Probe(); }, kLeastPatienceMs, 20)) << after;
  const double served = seconds();
  // A short run may share the machine with other work.
  const bool in_full = std::getenv("TOLLGATE_CHAOS_KILLS") != nullptr;
  EXPECT_LE(served, (in_full ? kServesAgainMs : kLeastPatienceMs) / 1000) << after;
  slowest_s_ = std::max(slowest_s_, served);
  std::fprintf(stderr, "%s %s: serves again after %.2f s\n", round_.c_str(), after.c_str(), served);
}

void KillsTest::OneKill() {
  ASSERT_NO_FATAL_FAILURE(UnderLoad());
  const std::string name = Deal();
  SCOPED_TRACE("kill of " + name);
  Kill(name, PidsOf(name));
  ++faults_["kill " + name];
  if (name != kSession) SleepMs(static_cast<int64_t>(random_() % 400));
  Recover({name}, "kill of " + name);
}

void KillsTest::Stops(int64_t count) {
  ASSERT_NO_FATAL_FAILURE(UnderLoad());
  struct Stopped {
    std::string name;
    std::vector<pid_t> pids;
    int64_t until_us;
    bool killed;
  };
  std::vector<Stopped> stopped;
  std::string what;
  while (static_cast<int64_t>(stopped.size()) < count) {
    const std::string name = Deal(stopped.empty() ? "" : stopped[0].name);
    const std::vector<pid_t> pids = PidsOf(name);
    for (const pid_t pid : pids) kill(pid, SIGSTOP);
    stopped.push_back({name, pids, MonotonicUs() + kStopMs * 1000, random_() % 4 == 0});
    ++faults_["stop " + name + (stopped.back().killed ? ", then kill" : "")];
    what +=
        (what.empty() ? "stop of " : " and ") + name + (stopped.back().killed ? ", then kill" : "");
    SleepMs(static_cast<int64_t>(random_() % 1'500));
  }
  SCOPED_TRACE(what);
  std::vector<std::string> killed;
  for (const Stopped& one : stopped) {
    SleepMs(std::max<int64_t>((one.until_us - MonotonicUs()) / 1000, 0));
    if (one.killed) {
      Kill(one.name, one.pids);
      killed.push_back(one.name);
    } else {
      for (const pid_t pid : one.pids) kill(pid, SIGCONT);
    }
  }
  Recover(killed, what);
}

void KillsTest::Round(int64_t faults) {
  for (int64_t done = 0; done < faults && !HasFailure();) {
    if (GetParam().stops) {
      const int64_t count = std::min<int64_t>(2, faults - done);
      ASSERT_NO_FATAL_FAILURE(Stops(count));
      done += count;
    } else {
      ASSERT_NO_FATAL_FAILURE(OneKill());
      ++done;
    }
  }
  load_->Stop();
  if (leases_) {
    EXPECT_GT(SumOfMetric(*cluster_, "tollgate_router_lease_admissions_total").value_or(0), 0);
  }
  // A lease lives for a minute, and nothing expires in the first minute after a start of billing.
  const Figures round =
      CompareWithLedger(*cluster_, *engine_, *load_, leases_ ? 60 : hold_ttl_seconds_);
  CompareWithAuditLog(billing_sql_);
  EXPECT_GT(round.complete, faults);
  EXPECT_GT(round.top_ups, faults);
  figures_ += round;
}

void KillsTest::End() {
  if (load_) load_->Stop();
  if (cluster_) {
    EXPECT_EQ(cluster_->StopOrderly(), "") << "no process may crash except those killed";
    if (HasFailure()) KeepLogs();
  }
  load_.reset();
  cluster_.reset();
  engine_.reset();
}

void KillsTest::KeepLogs() const {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("tollgate-" + round_ + "-" + std::to_string(getpid()));
  std::error_code error;
  fs::copy(cluster_->dir(), folder, fs::copy_options::recursive, error);
  if (postgres_) fs::copy_file(postgres_->log_file(), folder / "postgres.log", error);
  std::fprintf(stderr, "logs and files of the cluster: %s\n", folder.c_str());
}

// A row of the table in docs/proofs.md.
void KillsTest::Report(uint32_t seed) const {
  std::string faults;
  for (const auto& [kind, count] : faults_) {
    faults += (faults.empty() ? "" : ", ") + kind + " " + std::to_string(count);
  }
  std::printf(
      "KILLS | %s | %u | %s | %lld | %lld | %lld | %lld | %lld (%lld) | %lld | %lld | %.1f s |\n",
      GetParam().name.c_str(), seed, faults.c_str(), static_cast<long long>(figures_.complete),
      static_cast<long long>(figures_.refused), static_cast<long long>(figures_.cut),
      static_cast<long long>(figures_.no_answer), static_cast<long long>(figures_.top_ups),
      static_cast<long long>(figures_.top_ups_unknown), static_cast<long long>(figures_.expired),
      static_cast<long long>(figures_.entries), slowest_s_);
}

TEST_P(KillsTest, CallersAreToldWhatTheLedgerSays) {
  if (GetParam().postgres) {
    if (GetParam().citus && !TestPostgres::CitusInstalled()) {
      GTEST_SKIP() << "Citus is not installed";
    }
    postgres_ = GetParam().citus ? TestPostgres::StartCitus(2) : TestPostgres::Start();
    if (!postgres_) {
      ASSERT_FALSE(TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
  }
  const int64_t all = FromEnvironment("TOLLGATE_CHAOS_KILLS", 0);
  const int64_t faults =
      all > 0 ? std::max<int64_t>(all * GetParam().share / 1000, 1) : GetParam().small;
  if (faults == 0) GTEST_SKIP() << "only in full";
  const auto seed = static_cast<uint32_t>(FromEnvironment("TOLLGATE_CHAOS_SEED", 1));
  for (int64_t done = 0, round = 0; done < faults && !HasFailure(); ++round) {
    const int64_t count = std::min(kFaultsOfARound, faults - done);
    const uint32_t round_seed = seed + static_cast<uint32_t>(round);
    SCOPED_TRACE("seed " + std::to_string(round_seed) + ", round " + std::to_string(round));
    Start(round_seed, round);
    if (!HasFailure()) Round(count);
    End();
    done += count;
  }
  Report(seed);
}

INSTANTIATE_TEST_SUITE_P(, KillsTest, ::testing::ValuesIn(kParts),
                         [](const auto& part) { return part.param.name; });

}  // namespace
}  // namespace tollgate::test
