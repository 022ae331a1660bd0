// Two replicas each of auth, billing, catalog, ratelimit and the inference router, under load. In
// turn one of them is stopped (SIGSTOP, continued later) or killed (SIGKILL, and restarted).
// Callers may notice only the fault of a router, and only after their answer had begun. Afterwards
// what callers received is compared with the ledger. See docs/design/failures.md 3.
//
// TOLLGATE_REPLICA_FAULTS sets the number of faults (7 when not set), TOLLGATE_CHAOS_SEED the seed.
#include <gtest/gtest.h>

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
#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/postgres.h"
#include "tests/support/redis.h"
#include "tests/support/stopped_thread.h"

namespace tollgate::test {
namespace {

using testing::TestPostgres;
using testing::TestRedis;

constexpr int kHoldTtlSeconds = 10;
// A stop is longer than any caller waits for a replica; a killed replica is restarted sooner.
constexpr int64_t kStopMs = 5'000;
constexpr int64_t kKillMs = 1'000;
// Time within which a replica that hangs is ejected.
constexpr int64_t kLeftUs = 1'000'000;
// What a call may take beyond the engine's time on a loaded machine: one that begins after the
// ejection, one that begins before and waits for it, and one that was running and runs again
// elsewhere. A short run may share the machine with other work: still less than a stop lasts.
const int64_t kSlowUs = std::getenv("TOLLGATE_REPLICA_FAULTS") != nullptr ? 1'500'000 : 3'500'000;
const int64_t kWaitsUs = kSlowUs + kLeftUs;
const int64_t kAgainUs = kWaitsUs + 2'500'000;
// What a change may take while a replica hangs: two seconds on a machine without other work; this
// bound only ends the test.
constexpr int64_t kNoticeUs = 30'000'000;
constexpr int kKeysOfAWorkspace = 40;
// Longer than any ejection: a replica that was ejected several times within a minute stays ejected
// for up to half a minute (ReplicaHealth::kMaxEjectionUs).
constexpr int64_t kReturnMs = 35'000;

struct Fault {
  std::string name;
  bool kill = false;
};

bool IsRouter(const std::string& name) { return name.starts_with("inference-router"); }

std::string KindOf(const Fault& fault) {
  const size_t number = fault.name.rfind("-2");
  return (fault.kill ? "kill " : "stop ") + fault.name.substr(0, number);
}

class ReplicasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    postgres_ = TestPostgres::Start();
    if (!postgres_) {
      if (TestPostgres::Required()) FAIL() << "PostgreSQL is not installed";
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    redis_ = TestRedis::Start();
    ASSERT_NE(redis_, nullptr);
    options.auths = options.billings = options.catalogs = options.routers = 2;
    options.ratelimits = 2;
    options.ratelimit_settings = {"redis_url: " + redis_->url()};
    options.hold_ttl_seconds = kHoldTtlSeconds;
    options.host_settings = {"core_dumps: true"};  // else only root may stop one of its threads
    options.catalog = Catalog(Load::kInputPrice);
    options.auth_sql = postgres_->MakeDatabase("auth");
    options.billing_sql = postgres_->MakeDatabase("billing");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (load_) load_->Stop();
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  std::string Catalog(const std::string& input_price) const {
    return DefaultCatalog({engine_.base_url()}, input_price, Load::kOutputPrice);
  }
  void Begin(const Fault& fault) {
    Process& process = cluster_->process(fault.name);
    fault.kill ? process.Kill() : process.Signal(SIGSTOP);
  }
  void End(const Fault& fault) {
    if (fault.kill) {
      ASSERT_EQ(cluster_->Restart(fault.name), "");
    } else {
      cluster_->process(fault.name).Signal(SIGCONT);
    }
  }
  // Returns true when no process has ejected a replica.
  bool AllUsed() {
    for (const char* name : {"gateway", "inference-router", "inference-router-2"}) {
      const std::string text = Http(cluster_->admin_port(name), "GET", "/metrics").body;
      for (size_t at = 0;
           (at = text.find("\ntollgate_rpc_replica_ejected{", at)) != std::string::npos;) {
        at = text.find("} ", at);
        if (text.compare(at + 2, 2, "0\n") != 0) return false;
      }
    }
    return true;
  }
  int StatusOf(const ApiKey& key) {
    return cluster_
        ->Post(key, "/v1/chat/completions",
               R"({"model":"sim/model","messages":[{"role":"user","content":"x"}],)"
               R"("x_sim":{"tokens":1}})")
        .status;
  }

  std::unique_ptr<TestPostgres> postgres_;
  std::unique_ptr<TestRedis> redis_;
  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Load> load_;
};

TEST_F(ReplicasTest, NoCallerNoticesThatAReplicaHangsOrDies) {
  const int64_t count = FromEnvironment("TOLLGATE_REPLICA_FAULTS", 7);
  const int64_t seed = FromEnvironment("TOLLGATE_CHAOS_SEED", 1);
  std::mt19937 random(static_cast<uint32_t>(seed));
  load_ = std::make_unique<Load>(*cluster_, "replicas", kKeysOfAWorkspace);
  load_->Start();

  struct Done {
    Fault fault;
    int64_t begun_us;
    int64_t ended_us;
  };
  struct Sum {
    int64_t faults = 0;
    int64_t calls = 0;
    int64_t failed = 0;
    // Time beyond the engine's own.
    int64_t slowest_us = 0;
    int64_t slowest_later_us = 0;  // the same for calls that began after kLeftUs
  };
  std::vector<Done> done;
  std::map<std::string, Sum> sums;
  const std::vector<std::string> services = {"inference-router", "billing", "auth", "catalog",
                                             "ratelimit"};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t before = load_->complete();
    ASSERT_TRUE(WaitUntil([&] { return load_->complete() >= before + 6; }, 20'000));
    ASSERT_TRUE(WaitUntil([&] { return engine_.running() >= Load::kWorkers / 2; }, 20'000));
    const std::string service = services[static_cast<size_t>(i) % services.size()];
    // Each service is stopped and killed in turn.
    const size_t turn = static_cast<size_t>(i) / services.size();
    const Fault fault{service + (random() % 2 == 0 ? "" : "-2"),
                      (static_cast<size_t>(i) % services.size() + turn) % 2 == 1};
    done.push_back({fault, MonotonicUs(), 0});
    Begin(fault);
    SleepMs(fault.kill ? kKillMs : kStopMs);
    done.back().ended_us = MonotonicUs();
    ASSERT_NO_FATAL_FAILURE(End(fault));
    // The next fault may hit the other replica only when this one is used again.
    ASSERT_TRUE(WaitUntil([&] { return AllUsed(); }, kReturnMs, 50)) << fault.name;
  }
  load_->Stop();

  for (const Call& call : load_->calls()) {
    // The faults that the call met.
    Done* last = nullptr;
    bool may_fail = false;
    for (Done& at : done) {
      if (call.begun_us > at.ended_us || call.ended_us < at.begun_us) continue;
      last = &at;
      if (IsRouter(at.fault.name) && call.begun_us < at.begun_us) {
        may_fail = may_fail || !call.streamed || call.seen_tokens > 0;
      }
    }
    if (last == nullptr) {
      EXPECT_TRUE(call.complete) << call.tag << " met no fault";
      continue;
    }
    Sum& sum = sums[KindOf(last->fault)];
    ++sum.calls;
    if (call.complete) {
      const int64_t after_us = call.begun_us - last->begun_us;
      const int64_t beyond_us = call.ended_us - call.begun_us - call.engine_us;
      EXPECT_LE(beyond_us, after_us < 0         ? kAgainUs
                           : after_us < kLeftUs ? kWaitsUs
                                                : kSlowUs)
          << KindOf(last->fault) << ": a call that began " << after_us / 1000
          << " ms after the fault";
      (after_us < kLeftUs ? sum.slowest_us : sum.slowest_later_us) =
          std::max(after_us < kLeftUs ? sum.slowest_us : sum.slowest_later_us, beyond_us);
      continue;
    }
    ++sum.failed;
    EXPECT_TRUE(may_fail) << KindOf(last->fault) << ": a call that began "
                          << (call.begun_us - last->begun_us) / 1000
                          << " ms after the fault ended with status " << call.status << " "
                          << call.error << " after " << call.seen_tokens << " tokens and "
                          << (call.ended_us - call.begun_us) / 1000 << " ms, streamed "
                          << call.streamed << ", " << call.tag;
  }
  const Figures figures = CompareWithLedger(*cluster_, engine_, *load_, kHoldTtlSeconds);
  EXPECT_TRUE(cluster_->VerifyLedger().ok);
  for (const Done& at : done) ++sums[KindOf(at.fault)].faults;
  for (const auto& [kind, sum] : sums) {
    std::printf("REPLICAS | %s | %lld | %lld | %lld | %.1f s | %.1f s |\n", kind.c_str(),
                static_cast<long long>(sum.faults), static_cast<long long>(sum.calls),
                static_cast<long long>(sum.failed), static_cast<double>(sum.slowest_us) / 1e6,
                static_cast<double>(sum.slowest_later_us) / 1e6);
  }
  std::printf("REPLICAS_SUM faults=%lld calls=%zu complete=%lld seed=%lld entries=%lld\n",
              static_cast<long long>(count), load_->calls().size(),
              static_cast<long long>(figures.complete), static_cast<long long>(seed),
              static_cast<long long>(figures.entries));
}

// The streams of changes continue at the other replica, from their last position.
TEST_F(ReplicasTest, ChangesActSoonWhicheverReplicaHangs) {
  const ApiKey key = cluster_->NewCustomer(Load::kCredit);
  ASSERT_TRUE(WaitUntil([&] { return StatusOf(key) == 200; }, 10'000));
  // Moves the streams to the second replicas.
  for (const char* name : {"auth", "catalog"}) {
    cluster_->process(name).Kill();
  }
  SleepMs(1'500);
  ASSERT_EQ(cluster_->Restart(std::vector<std::string>{"auth", "catalog"}), "");
  ASSERT_TRUE(WaitUntil([&] { return AllUsed(); }, kReturnMs, 50));
  EXPECT_EQ(StatusOf(key), 200);

  for (const char* name : {"auth-2", "catalog-2"}) cluster_->process(name).Signal(SIGSTOP);
  const int64_t begun_us = MonotonicUs();
  // The connection of this test to the killed auth is lost.
  ASSERT_TRUE(WaitUntil([&] { return cluster_->SetKeyState(key, Cluster::KeyState::kDisabled); },
                        5'000, 10));
  cluster_->WriteCatalog(Catalog("7.5"));
  EXPECT_TRUE(WaitUntil([&] { return StatusOf(key) == 403; }, 10'000, 10));
  EXPECT_LT(MonotonicUs() - begun_us, kNoticeUs) << "the change of the key";
  EXPECT_TRUE(WaitUntil(
      [&] {
        return Http(cluster_->port(), "GET", "/v1/models").body.find("0.0000075") !=
               std::string::npos;
      },
      10'000, 10));
  EXPECT_LT(MonotonicUs() - begun_us, kNoticeUs + 500'000) << "the change of the catalog";
  for (const char* name : {"auth-2", "catalog-2"}) cluster_->process(name).Signal(SIGCONT);
}

// A process with one hanging loop answers many calls; all its callers are told to leave it.
TEST_F(ReplicasTest, AProcessWithALoopThatHangsIsLeft) {
  const ApiKey key = cluster_->NewCustomer(Load::kCredit);
  ASSERT_TRUE(WaitUntil([&] { return StatusOf(key) == 200; }, 10'000));
  ASSERT_TRUE(WaitUntil([&] { return AllUsed(); }, kReturnMs, 50));
  const auto ready = [&] {
    return Http(cluster_->admin_port("auth-2"), "GET", "/readyz", {}, "", 1'000);
  };
  ASSERT_EQ(ready().status, 200);
  {
    const StoppedThread thread(cluster_->process("auth-2").pid(), "loop-1");
    ASSERT_TRUE(thread.stopped());
    EXPECT_TRUE(WaitUntil([&] { return ready().status == 503; }, 5'000, 20));
    EXPECT_NE(ready().body.find("\"loops\":false"), std::string::npos) << ready().body;
    EXPECT_TRUE(WaitUntil([&] { return !AllUsed(); }, 5'000, 20)) << "by the gateway";
    EXPECT_EQ(StatusOf(cluster_->NewKey(key.workspace_id)), 200) << "a key that is looked up";
  }
  EXPECT_TRUE(WaitUntil([&] { return ready().status == 200; }, 5'000, 20));
  EXPECT_TRUE(WaitUntil([&] { return AllUsed(); }, kReturnMs, 50));
}

}  // namespace
}  // namespace tollgate::test
