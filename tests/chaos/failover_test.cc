// The databases of auth and billing change their primary under load, managed by Patroni: planned
// switch-overs are not noticed by callers, a primary that is lost refuses new calls for as long as
// Patroni's ttl at most, and nothing is lost or booked twice. See
// docs/operations/high-availability.md.
//
// TOLLGATE_FAILOVERS sets how many of each there are (1 when not set).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/comparison.h"
#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/patroni.h"

namespace tollgate::test {
namespace {

constexpr int kHoldTtlSeconds = 6;
// From a primary's loss: etcd forgets it after the ttl at the latest, the standby looks for that
// every 5 s and is promoted, and what waits comes through. On a machine with much other work.
constexpr int64_t kRefusedUs = (TestPatroni::kTtlSeconds + 10) * int64_t{1'000'000};

// Admissions wait for 3 s. A switch-over takes longer on a machine with much other work.
constexpr int64_t kUnnoticedUs = 3'500'000;

struct Change {
  bool planned = false;
  int64_t from_us = 0;  // monotonic
  int64_t to_us = 0;    // the product has answered a new call
};

class FailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    std::string why = TestPatroni::WhyNot();
    if (!why.empty()) GTEST_SKIP() << why;
    patroni_ = TestPatroni::Start(why);
    ASSERT_TRUE(patroni_) << why;
    ClusterOptions options;
    options.all_in_one = false;
    options.catalog = DefaultCatalog({engine_.base_url()}, Load::kInputPrice, Load::kOutputPrice);
    options.hold_ttl_seconds = kHoldTtlSeconds;
    options.auth_sql = patroni_->MakeDatabase("auth");
    options.billing_sql = patroni_->MakeDatabase("billing");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n%s\n", patroni_->Logs().c_str(), cluster_->Logs().c_str());
    }
  }
  // Changes the primary and waits until a new call is answered, and then for a standby.
  Change Run(Load& load, bool planned) {
    Change change{.planned = planned, .from_us = MonotonicUs()};
    const int before = patroni_->Primary();
    if (planned) {
      EXPECT_TRUE(patroni_->SwitchOver()) << patroni_->Logs();
    } else {
      patroni_->Kill(before);
      EXPECT_TRUE(WaitUntil([&] { return patroni_->Primary() == 1 - before; }, 60'000, 20));
    }
    EXPECT_TRUE(WaitUntil([&] { return load.Probe(); }, 60'000, 20));
    change.to_us = MonotonicUs();
    if (!planned) {
      EXPECT_TRUE(patroni_->Restart(before));
    }
    EXPECT_TRUE(patroni_->WaitHealthy()) << patroni_->Logs();
    const int64_t whole = load.complete();
    EXPECT_TRUE(WaitUntil([&] { return load.complete() >= whole + 30; }, 60'000, 20));
    return change;
  }

  const int64_t times_ = FromEnvironment("TOLLGATE_FAILOVERS", 1);
  EngineSim engine_;
  std::unique_ptr<TestPatroni> patroni_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(FailoverTest, ASwitchOverIsNotNoticedAndALostPrimaryRefusesForItsTtlAtMost) {
  Load load(*cluster_, "failover");
  load.Start();
  ASSERT_TRUE(WaitUntil([&] { return load.complete() >= 30; }, 60'000, 20));
  std::vector<Change> changes;
  for (int64_t i = 0; i < times_; ++i) {
    for (const bool planned : {true, false}) {
      if (!HasFailure()) changes.push_back(Run(load, planned));
    }
  }
  load.Stop();
  const Figures figures = CompareWithLedger(*cluster_, engine_, load, kHoldTtlSeconds);
  EXPECT_EQ(cluster_->OpenDeadLetters(), 0);

  // Refusals by the change within which their call began; the last one is for those beside any.
  std::vector<int64_t> refused(changes.size() + 1), from(changes.size()), to(changes.size());
  int64_t slowest_us = 0;
  for (const Call& call : load.calls()) {
    const auto change = std::find_if(changes.begin(), changes.end(), [&](const Change& one) {
      return call.ended_us >= one.from_us && call.begun_us <= one.to_us;
    });
    if (call.complete) {
      slowest_us = std::max(slowest_us, call.ended_us - call.begun_us - call.engine_us);
      continue;
    }
    const auto at = static_cast<size_t>(change - changes.begin());
    ++refused[at];
    if (change == changes.end()) continue;
    const int64_t since_us = call.ended_us - change->from_us;
    if (from[at] == 0) from[at] = since_us;
    from[at] = std::min(from[at], since_us);
    to[at] = std::max(to[at], since_us);
  }
  EXPECT_EQ(refused.back(), 0) << "calls failed beside all changes";
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (change.planned && change.to_us - change.from_us < kUnnoticedUs) {
      EXPECT_EQ(refused[i], 0) << "switch-over " << i;
    }
    EXPECT_LE(to[i], kRefusedUs) << "change " << i;
    std::printf("FAILOVER | %s | %.1f | %lld | %.1f | %.1f |\n",
                change.planned ? "switch-over" : "primary lost",
                static_cast<double>(change.to_us - change.from_us) / 1e6,
                static_cast<long long>(refused[i]), static_cast<double>(from[i]) / 1e6,
                static_cast<double>(to[i]) / 1e6);
  }
  std::printf(
      "FAILOVER_BOOKS %lld complete, %lld refused, %lld cut, %lld top-ups, %lld holds "
      "expired, %lld entries verified; slowest %.1f s beyond its engine\n",
      static_cast<long long>(figures.complete), static_cast<long long>(figures.refused),
      static_cast<long long>(figures.cut), static_cast<long long>(figures.top_ups),
      static_cast<long long>(figures.expired), static_cast<long long>(figures.entries),
      static_cast<double>(slowest_us) / 1e6);
}

}  // namespace
}  // namespace tollgate::test
