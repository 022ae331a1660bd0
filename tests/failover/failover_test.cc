// The databases of auth and billing change their primary under load, managed by Patroni: callers do
// not notice planned switch-overs; after the loss of a primary, new calls are refused for at most
// Patroni's ttl, and calls of a workspace with a lease on its credit are not refused; nothing is
// lost or booked twice. See docs/operations/high-availability.md.
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
#include "tests/support/metrics.h"
#include "tests/support/patroni.h"

namespace tollgate::test {
namespace {

constexpr int kHoldTtlSeconds = 6;
constexpr int kLeaseSeconds = 60;
// Time from a primary's loss: etcd forgets it after the ttl at the latest, the standby checks for
// that every 5 s and is promoted, and waiting calls complete. Allows for a machine with much other
// work.
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
    options_ = options;
  }
  void Start() {
    cluster_ = std::make_unique<Cluster>(options_);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) {
      std::fprintf(stderr, "%s\n%s\n", patroni_->Logs().c_str(), cluster_->Logs().c_str());
    }
  }
  // Changes the primary, waits until a new call is answered, and then for a standby.
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

  struct Refusals {
    int64_t calls = 0;
    int64_t first_us = 0;  // since the change began
    int64_t last_us = 0;
    std::string all;  // one line each
  };
  // Refusals by the change during which their call began; none may lie outside all changes.
  std::vector<Refusals> RefusalsOf(const Load& load, const std::vector<Change>& changes) {
    std::vector<Refusals> refusals(changes.size());
    for (const Call& call : load.calls()) {
      if (call.complete) {
        slowest_us_ = std::max(slowest_us_, call.ended_us - call.begun_us - call.engine_us);
        continue;
      }
      const auto change = std::find_if(changes.begin(), changes.end(), [&](const Change& one) {
        return call.ended_us >= one.from_us && call.begun_us <= one.to_us;
      });
      if (change == changes.end()) {
        ADD_FAILURE() << call.tag << " failed outside of every change: " << call.error;
        continue;
      }
      Refusals& of = refusals[static_cast<size_t>(change - changes.begin())];
      const int64_t since_us = call.ended_us - change->from_us;
      of.first_us = of.calls == 0 ? since_us : std::min(of.first_us, since_us);
      of.last_us = std::max(of.last_us, since_us);
      ++of.calls;
      of.all += call.tag + " of " + call.workspace + ", after " + std::to_string(since_us / 1000) +
                " ms, of which it took " + std::to_string((call.ended_us - call.begun_us) / 1000) +
                ": status " + std::to_string(call.status) + " " + call.error + "\n";
    }
    return refusals;
  }
  // A row of the table in docs/proofs.md.
  static void Print(const char* kind, const Change& change, const Refusals& refusals) {
    std::printf("FAILOVER | %s | %.1f | %lld | %.1f | %.1f |\n", kind,
                static_cast<double>(change.to_us - change.from_us) / 1e6,
                static_cast<long long>(refusals.calls),
                static_cast<double>(refusals.first_us) / 1e6,
                static_cast<double>(refusals.last_us) / 1e6);
  }
  // Call after the load has stopped and its refusals were counted.
  void CompareBooks(const Load& load, int ttl_seconds, const char* kind) {
    const Figures figures = CompareWithLedger(*cluster_, engine_, load, ttl_seconds);
    EXPECT_EQ(cluster_->OpenDeadLetters(), 0);
    std::printf(
        "FAILOVER_BOOKS %lld complete%s, %lld refused, %lld cut, %lld top-ups, %lld holds "
        "expired, %lld entries verified; slowest %.1f s beyond its engine\n",
        static_cast<long long>(figures.complete), kind, static_cast<long long>(figures.refused),
        static_cast<long long>(figures.cut), static_cast<long long>(figures.top_ups),
        static_cast<long long>(figures.expired), static_cast<long long>(figures.entries),
        static_cast<double>(slowest_us_) / 1e6);
  }

  const int64_t times_ = FromEnvironment("TOLLGATE_FAILOVERS", 1);
  EngineSim engine_;
  std::unique_ptr<TestPatroni> patroni_;
  ClusterOptions options_;
  std::unique_ptr<Cluster> cluster_;
  int64_t slowest_us_ = 0;
};

TEST_F(FailoverTest, ASwitchOverIsNotNoticedAndALostPrimaryRefusesForItsTtlAtMost) {
  Start();
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
  const std::vector<Refusals> refusals = RefusalsOf(load, changes);
  for (size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (change.planned && change.to_us - change.from_us < kUnnoticedUs) {
      EXPECT_EQ(refusals[i].calls, 0) << "switch-over " << i;
    }
    EXPECT_LE(refusals[i].last_us, kRefusedUs) << "change " << i;
    Print(change.planned ? "switch-over" : "primary lost", change, refusals[i]);
  }
  CompareBooks(load, kHoldTtlSeconds, "");
}

TEST_F(FailoverTest, WorkspacesWithALeaseDoNotNoticeALostPrimary) {
  options_.billing_settings = {"lease_above_requests_per_second: 1"};
  // As long as a lease. With a heartbeat, the full possible cost of a request counts as used.
  options_.hold_ttl_seconds = kLeaseSeconds;
  Start();
  // Few workspaces, so that each is busy enough for billing also on a slow machine.
  Load load(*cluster_, "leases", /*keys_of_a_workspace=*/1, /*workspaces=*/2);
  load.Start();
  std::vector<Change> changes;
  for (int64_t i = 0; i < times_ && !HasFailure(); ++i) {
    // Each loop of a router takes its own lease.
    ASSERT_TRUE(WaitUntil(
        [&] {
          return SumOfMetric(*cluster_, "tollgate_router_leases").value_or(0) >=
                 static_cast<double>(load.customers().size()) * options_.threads;
        },
        60'000, 100))
        << "a workspace has no lease";
    // A lease is sized by recent spending, so it does not cover the first second.
    const int64_t whole = load.complete();
    ASSERT_TRUE(WaitUntil([&] { return load.complete() >= whole + 100; }, 60'000, 20));
    changes.push_back(Run(load, /*planned=*/false));
  }
  load.Stop();
  const std::vector<Refusals> refusals = RefusalsOf(load, changes);
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(refusals[i].calls, 0) << "change " << i << ":\n" << refusals[i].all;
    Print("primary lost, with leases", changes[i], refusals[i]);
  }
  CompareBooks(load, kLeaseSeconds, ", with leases");
}

}  // namespace
}  // namespace tollgate::test
