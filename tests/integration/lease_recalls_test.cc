// A freeze, a lowered cap and a disabled key stop the requests of workspaces with leases on their
// credit within about a second (docs/adr/0052).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/metrics.h"
#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000'000;
constexpr char kAdmitted[] = "tollgate_router_lease_admissions_total{result=\"admitted\"}";
// The bound is a second. A busy machine adds to it, but stays below the 10 s after which a lease
// is renewed, and far below the 50 s for which it admits without a renewal.
constexpr int64_t kBoundUs = 8'000'000;

constexpr int kCallers = 4;
// Nano-USD that a returned lease keeps for a request that was running: its prompt and 4,096 output
// tokens. A lease has room for eight of them at least.
constexpr int64_t kMostOfRequest = 13'000'000;

// Makes calls one after the other on a few threads.
class Callers {
 public:
  Callers(Cluster& cluster, const ApiKey& key) : cluster_(cluster), key_(key) {
    for (int i = 0; i < kCallers; ++i) threads_.emplace_back([this] { Call(); });
  }
  ~Callers() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  // When the newest served call began, and how many served calls began after a time.
  int64_t last_served_us() const { return last_served_us_; }
  int64_t ServedSince(int64_t us) {
    const std::lock_guard lock(mutex_);
    return std::ranges::count_if(served_us_, [us](int64_t at) { return at > us; });
  }
  int64_t refused_in_a_row() const { return refused_in_a_row_; }

 private:
  void Call() {
    while (!stopping_) {
      const int64_t began_us = MonotonicUs();
      const int status =
          cluster_
              .Post(key_, "/v1/chat/completions",
                    R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}],)"
                    R"("x_sim":{"tokens":2}})")
              .status;
      if (status != 200) {
        ++refused_in_a_row_;
        continue;
      }
      refused_in_a_row_ = 0;
      const std::lock_guard lock(mutex_);
      served_us_.push_back(began_us);
      last_served_us_ = std::max<int64_t>(last_served_us_, began_us);
    }
  }

  Cluster& cluster_;
  const ApiKey key_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> refused_in_a_row_ = 0;
  std::atomic<int64_t> last_served_us_ = 0;
  std::mutex mutex_;
  std::vector<int64_t> served_us_;  // begins
  std::vector<std::thread> threads_;
};

class LeaseRecallsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = GetParam() == std::string("allinone");
    options.catalog = DefaultCatalog({engine_.base_url()});
    options.billing_settings = {"lease_above_requests_per_second: 1"};
    if (!options.all_in_one) {
      auto* server = testing::TestPostgres::Shared();
      if (!server) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      options.billing_sql = server->MakeDatabase("lease_recalls");
      options.billings = 2;
    }
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  // Runs the change while requests are admitted from leases, and measures how long they still are.
  void ExpectStops(const ApiKey& key, const char* what, const std::function<bool()>& change) {
    const double before = SumOfMetric(*cluster_, kAdmitted).value_or(0);
    Callers callers(*cluster_, key);
    ASSERT_TRUE(WaitUntil(
        [&] { return SumOfMetric(*cluster_, kAdmitted).value_or(0) > before + 50; }, 60'000));
    ASSERT_TRUE(change());
    const int64_t changed_us = MonotonicUs();
    ASSERT_TRUE(WaitUntil([&] { return callers.refused_in_a_row() > 100; }, 120'000));
    const int64_t late_us = std::max<int64_t>(callers.last_served_us() - changed_us, 0);
    std::printf("LEASE_RECALLS %s %s served=%lld ms=%lld\n", GetParam(), what,
                static_cast<long long>(callers.ServedSince(changed_us)),
                static_cast<long long>(late_us / 1000));
    EXPECT_LT(late_us, kBoundUs);
  }
  // Without this the leases would reserve credit for a minute.
  void ExpectLeasesReturned(const ApiKey& key) {
    EXPECT_TRUE(WaitUntil(
        [&] {
          const auto balance = cluster_->Balance(key.workspace_id);
          return balance && balance->held <= kCallers * kMostOfRequest;
        },
        30'000));
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_P(LeaseRecallsTest, AFreezeStopsRequestsAndReturnsTheLeases) {
  const ApiKey key = cluster_->NewCustomer(kCredit);
  ExpectStops(key, "freeze", [&] { return cluster_->Freeze(key.workspace_id); });
  ExpectLeasesReturned(key);
}

// Decision 6: lowering the cap below what is spent blocks new requests at once.
TEST_P(LeaseRecallsTest, ALoweredCapStopsRequestsAndReturnsTheLeases) {
  const ApiKey key = cluster_->NewCustomer(kCredit);
  ExpectStops(key, "cap", [&] { return cluster_->SetCap(key.workspace_id, 1); });
  ExpectLeasesReturned(key);
}

// Gateways learn it from auth before they ask a router. The lease stays for the other keys.
TEST_P(LeaseRecallsTest, ADisabledKeyStopsItsRequests) {
  const ApiKey key = cluster_->NewCustomer(kCredit);
  ExpectStops(key, "key", [&] { return cluster_->SetKeyState(key, Cluster::KeyState::kDisabled); });
}

INSTANTIATE_TEST_SUITE_P(Systems, LeaseRecallsTest,
                         ::testing::Values("allinone", "cluster_postgres"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tollgate::test
