// Gateways and ratelimit processes that crash: slots are released, and no second burst is granted.
// Limiters that do not share their state are detected.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/metrics.h"
#include "tests/support/redis.h"

namespace tollgate::test {
namespace {

using tollgate::testing::TestRedis;

constexpr int64_t kUsd = 1'000'000'000;
constexpr char kChat[] = "/v1/chat/completions";
constexpr int64_t kPerMinute = 60;

std::string Body(const std::string& more) {
  return R"({"model":"sim/model","max_tokens":9,"messages":[{"role":"user","content":"hi"}],)" +
         more + "}";
}

class DeathsTest : public ::testing::Test {
 protected:
  void Start(ClusterOptions options) {
    ASSERT_TRUE(engine_.Start());
    options.all_in_one = false;
    options.log_level = "warn";
    options.catalog = DefaultCatalog({engine_.base_url()});
    cluster_ = std::make_unique<Cluster>(std::move(options));
    ASSERT_EQ(cluster_->Start(60'000), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
    EXPECT_EQ(cluster_->StopOrderly(), "");
  }
  int ChatAt(int gateway, const ApiKey& key) {
    return Http(cluster_->port(gateway), "POST", kChat, key.headers(),
                Body(R"("x_sim":{"tokens":1})"))
        .status;
  }

  // Requests that a share of the limit decided, since the limiter or Redis did not answer in time.
  double DecidedByShare() {
    return SumOfMetric(*cluster_, "tollgate_gateway_limiter_fallback_total").value_or(0) +
           SumOfMetric(*cluster_, "tollgate_ratelimit_local_decisions_total").value_or(0);
  }

  // Waits until the limiter has written its state twice: one write began after the last request.
  void AwaitStateFile() {
    const std::filesystem::path file = cluster_->dir() + "/ratelimit.state";
    for (int i = 0; i < 2; ++i) {
      const auto written = std::filesystem::last_write_time(file);
      ASSERT_TRUE(WaitUntil(
          [&] {
            std::error_code error;
            const auto now = std::filesystem::last_write_time(file, error);
            return !error && now != written;
          },
          10'000));
    }
  }
  // Uses up the limit and kills the limiter, which must continue where it was. burst: requests that
  // the limit grants at once; from_us: when it began to refill.
  void NoSecondBurst(int64_t burst, int64_t from_us) {
    const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.requests_per_minute = kPerMinute}});
    int64_t granted = 0;
    while (ChatAt(1, key) == 200) ++granted;
    EXPECT_GE(granted, burst);
    if (burst > 0) ASSERT_NO_FATAL_FAILURE(AwaitStateFile());
    cluster_->process("ratelimit").Kill();
    granted += ChatAt(1, key) == 200 ? 1 : 0;  // by the gateway's local share
    ASSERT_EQ(cluster_->Restart("ratelimit", 30'000), "");
    for (int i = 0; i < 2 * kPerMinute; ++i) granted += ChatAt(1, key) == 200 ? 1 : 0;
    const double seconds = static_cast<double>(MonotonicUs() - from_us) / 1e6;
    // The burst and the rate, plus a fifth by the gateway's local share, plus what the limiter, the
    // share and the new limiter round up; on a busy machine the local share is used for longer than
    // the limiter is down. A second burst would be 60.
    EXPECT_LE(static_cast<double>(granted),
              static_cast<double>(burst) + kPerMinute * 1.2 * seconds / 60 + kPerMinute / 2);
    EXPECT_TRUE(WaitUntil([&] { return ChatAt(1, key) == 200; }, 5'000, 100)) << "failed closed";
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(DeathsTest, TheSlotsOfAKilledGatewayAreFreeOnAnotherWithinTenSeconds) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  ClusterOptions options;
  options.gateways = 3;
  options.ratelimits = 2;
  options.lease_seconds = 0;  // the product's default
  options.ratelimit_settings = {"redis_url: " + redis->url()};
  ASSERT_NO_FATAL_FAILURE(Start(options));
  const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.concurrent_requests = 2}});
  // A new Redis may have lost slots: no slot is granted before all slots would have been renewed.
  ASSERT_TRUE(WaitUntil([&] { return ChatAt(1, key) == 200; }, 10'000, 50));
  std::vector<std::unique_ptr<HttpConnection>> running;
  for (int i = 0; i < 2; ++i) {
    running.push_back(std::make_unique<HttpConnection>(cluster_->port(1)));
    running.back()->SendRequest(
        "POST", kChat, key.headers(),
        Body(R"("stream":true,"x_sim":{"tokens":9,"hang_after_tokens":1})"));
    ASSERT_EQ(running.back()->ReadHead().status, 200);
  }
  // Longer than a slot lives without renewals.
  const int64_t held_until_us = MonotonicUs() + 10'000'000;
  double by_share = DecidedByShare();
  while (MonotonicUs() < held_until_us) {
    for (const int gateway : {2, 3}) {
      const int status = ChatAt(gateway, key);
      // On a busy machine a share of the limit may decide.
      const double before = std::exchange(by_share, DecidedByShare());
      ASSERT_TRUE(status == 429 || (status == 200 && by_share > before)) << status;
    }
    SleepMs(200);
  }
  cluster_->process("gateway").Kill();
  const int64_t killed_us = MonotonicUs();
  for (const int gateway : {2, 3}) {
    ASSERT_TRUE(WaitUntil([&] { return ChatAt(gateway, key) == 200; }, 20'000, 50));
  }
  // A slot lives nine seconds. A short run may share the machine with other work.
  const bool in_full = std::getenv("TOLLGATE_LIMITS_SECONDS") != nullptr;
  EXPECT_LE(MonotonicUs() - killed_us, in_full ? 10'000'000 : 30'000'000);
  ASSERT_EQ(cluster_->Restart("gateway", 30'000), "");
}

TEST_F(DeathsTest, AKilledLimiterWithAStateFileGrantsNoSecondBurst) {
  ASSERT_NO_FATAL_FAILURE(Start({}));
  NoSecondBurst(kPerMinute, MonotonicUs());
}

TEST_F(DeathsTest, AKilledLimiterWithoutAStateFileGrantsNoSecondBurst) {
  ClusterOptions options;
  options.ratelimit_settings = {"replicas: 1"};  // instead of the state file
  const int64_t from_us = MonotonicUs();
  ASSERT_NO_FATAL_FAILURE(Start(options));
  // Each start is without a burst, for a minute.
  NoSecondBurst(0, from_us);
}

TEST_F(DeathsTest, LimitersWithoutASharedStoreAreReportedByTheGateway) {
  ClusterOptions options;
  options.ratelimits = 2;
  options.ratelimit_settings = {"replicas: 1"};  // wrong on purpose: there are two
  ASSERT_NO_FATAL_FAILURE(Start(options));
  const ApiKey key = cluster_->NewCustomer(kUsd, {.limits = {.requests_per_minute = 100'000}});
  EXPECT_TRUE(WaitUntil(
      [&] {
        (void)ChatAt(1, key);
        return Http(cluster_->admin_port("gateway"), "GET", "/metrics")
                   .body.find("\ntollgate_gateway_limiter_stores 2\n") != std::string::npos;
      },
      20'000, 20));
  EXPECT_NE(cluster_->process("gateway").LogTail().find(
                "several rate limiters without a shared store are in use"),
            std::string::npos);
}

}  // namespace
}  // namespace tollgate::test
