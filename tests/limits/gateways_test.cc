// Limits under ten times their rate, with four whole gateways and three ratelimit processes on one
// Redis. A short run here; ./dev prove limits runs it in full.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <functional>

#include "tests/limits/gateways.h"
#include "tests/support/redis.h"

namespace tollgate::test {
namespace {

using tollgate::testing::TestRedis;
using tollgate::testing::TestSentinels;

int64_t Setting(const char* name, int64_t otherwise, int64_t least) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::max<int64_t>(least, std::atoll(text));
}

// Seconds of load per part, once the burst is spent.
int64_t Seconds() { return Setting("TOLLGATE_LIMITS_SECONDS", 6, 3); }
// The limit; ten times as many requests are made.
int64_t PerMinute() { return Setting("TOLLGATE_LIMITS_RATE", 300, 60); }
constexpr int64_t kConcurrent = 20;
// How long a request runs during a fault: long enough for a renewal of its slot.
constexpr int64_t kRunMs = 4'000;

// What the limit admits in this time: its burst plus its rate.
double Admitted(double seconds) { return static_cast<double>(PerMinute()) * (1 + seconds / 60); }
double PerSecond() { return static_cast<double>(PerMinute()) / 60; }

Gateways::Load TenTimesTheRate() {
  Gateways::Load load;
  load.limits.requests_per_minute = PerMinute();
  load.callers = 40;
  // An answer takes time, too: half of the pause is reserved for it.
  load.pause_ms = std::max<int64_t>(1, 500 * load.callers * 60 / (10 * PerMinute()));
  return load;
}

double Deviation(const Gateways::Count& count) {
  return 100 * (static_cast<double>(count.granted) / Admitted(count.seconds) - 1);
}

// A line of docs/proofs.md. deviation: in percent; 0 where the limit has no rate.
void Report(const char* part, int64_t limit, const Gateways::Count& count, double deviation) {
  std::printf(
      "LIMITS part=%s seconds=%.1f limit=%lld granted=%lld refused=%lld failed=%lld local=%lld "
      "deviation=%.2f most=%lld\n",
      part, count.seconds, static_cast<long long>(limit), static_cast<long long>(count.granted),
      static_cast<long long>(count.refused), static_cast<long long>(count.failed),
      static_cast<long long>(count.local), deviation, static_cast<long long>(count.most_running));
}

// Sentinels without CPU time for two seconds do nothing for the next 30 (their "tilt").
bool FailedOver(const TestSentinels& group) {
  return WaitUntil([&] { return group.MasterPort() == group.replica->port(); }, 90'000, 50);
}

class GatewaysTest : public ::testing::Test {
 protected:
  void Use(const std::string& redis_url) {
    // A pause of this machine must not look like a fault of Redis, and a gateway waits for 500 ms.
    gateways_ = std::make_unique<Gateways>(
        std::vector<std::string>{"redis_url: " + redis_url, "redis_timeout_ms: 300"});
    ASSERT_EQ(gateways_->Start(), "");
  }
  void TearDown() override {
    if (!gateways_) return;
    if (HasFailure()) std::fprintf(stderr, "%s\n", gateways_->Logs().c_str());
    EXPECT_EQ(gateways_->Stop(), "");
  }
  // Each gateway has seen it: during an outage its local share starts from the last response.
  bool BurstIsSpent() {
    return WaitUntil([&] { return gateways_->Taken().least_refused > 0; }, 120'000, 20);
  }

  // Ten times the rate: the limit is met to one per cent, plus the two requests at the ends. The
  // run is repeated if the machine stalled for longer than a gateway waits.
  void Rate() {
    SCOPED_TRACE("rate");
    Gateways::Count count;
    int64_t before = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      gateways_->StartLoad(TenTimesTheRate());
      ASSERT_TRUE(BurstIsSpent());
      before = gateways_->Taken().refused;
      SleepMs(Seconds() * 1000);
      // Several times the rate is requested.
      EXPECT_TRUE(WaitUntil(
          [&] {
            return static_cast<double>(gateways_->Taken().refused - before) >
                   5 * PerSecond() * static_cast<double>(Seconds());
          },
          60'000, 50));
      count = gateways_->StopLoad();
      if (count.local == 0 && count.failed == 0) break;
    }
    const double admitted = Admitted(count.seconds);
    // The local share is used when a decision takes longer than a gateway waits: at most 1.2 times
    // the rate. A machine this slow gives no exact numbers.
    const bool in_full = std::getenv("TOLLGATE_LIMITS_SECONDS") != nullptr;
    if (in_full || (count.local == 0 && count.failed == 0)) {
      EXPECT_EQ(count.local, 0) << "the machine is too busy for exact figures";
      EXPECT_EQ(count.failed, 0) << count.failure;
      EXPECT_NEAR(static_cast<double>(count.granted), admitted, admitted / 100 + 2);
    } else {
      EXPECT_LE(static_cast<double>(count.granted), 1.2 * admitted + 2);
      EXPECT_GE(static_cast<double>(count.granted), 0.8 * admitted);
    }
    Report("rate", PerMinute(), count, Deviation(count));
  }

  // The number of concurrent requests never exceeds the limit, counted at the engine.
  void Concurrency() {
    SCOPED_TRACE("concurrency");
    Gateways::Load load;
    load.limits.concurrent_requests = kConcurrent;
    load.callers = 60;
    load.pause_ms = 100;
    load.run_ms = 400;
    gateways_->StartLoad(load);
    SleepMs(Seconds() * 1000);
    const Gateways::Count count = gateways_->StopLoad();
    EXPECT_EQ(count.failed, 0) << count.failure;
    // Decisions by a gateway's local share, because the machine stalled, were not made by Redis.
    EXPECT_LE(count.most_running, kConcurrent + count.local) << count.running;
    EXPECT_GE(count.most_running, kConcurrent - 2) << "the limit is used";
    EXPECT_GT(count.refused, kConcurrent);
    Report("concurrency", kConcurrent, count, 0);
  }

  // A fault while ten times the rate is requested. It never fails open: total admissions stay below
  // the limit plus a small part of it during the fault. It never fails closed: requests are
  // admitted all the time.
  void Fault(const char* name, const std::function<void()>& begin,
             const std::function<bool()>& mend) {
    SCOPED_TRACE(name);
    gateways_->StartLoad(TenTimesTheRate());
    ASSERT_TRUE(BurstIsSpent());
    const int64_t begun_us = MonotonicUs();
    const int64_t before = gateways_->Taken().granted;
    begin();
    SleepMs(Seconds() * 500);
    const auto during = static_cast<double>(gateways_->Taken().granted - before);
    const double fault_s = static_cast<double>(MonotonicUs() - begun_us) / 1e6;
    ASSERT_TRUE(mend());
    // Redis decides again.
    int64_t local = -1;
    ASSERT_TRUE(WaitUntil(
        [&] {
          const int64_t now = gateways_->Taken().local;
          return std::exchange(local, now) == now;
        },
        20'000, 500));
    const double mended_s = static_cast<double>(MonotonicUs() - begun_us) / 1e6;
    SleepMs(Seconds() * 500);
    const Gateways::Count count = gateways_->StopLoad();
    EXPECT_EQ(count.failed, 0) << count.failure;
    EXPECT_GE(during, 0.3 * PerSecond() * fault_s - 1) << "failed closed";
    // A local share may start with a small burst of its own; failing open would be ten times the
    // rate.
    EXPECT_LE(during, 3 * PerSecond() * fault_s + 8 * PerSecond()) << "failed open";
    EXPECT_LE(static_cast<double>(count.granted),
              1.2 * Admitted(count.seconds) + 0.4 * PerSecond() * mended_s)
        << "a second burst";
    during_ = during;
    fault_s_ = fault_s;
    Report(name, PerMinute(), count, Deviation(count));
  }

  // A fault while more requests are made than may run at a time, and requests run for longer than
  // the detection takes. The limit is never exceeded while Redis is reachable, whatever it has
  // lost; while Redis is unreachable each gateway runs at most its part of 1.2 times the limit, or
  // what it ran before.
  void ConcurrencyFault(const char* name, bool redis_lives, const std::function<void()>& begin,
                        const std::function<bool()>& mend) {
    SCOPED_TRACE(name);
    Gateways::Load load;
    load.limits.concurrent_requests = kConcurrent;
    load.callers = 60;
    load.pause_ms = 100;
    load.run_ms = kRunMs;
    gateways_->StartLoad(load);
    const auto granted_again = [&] {
      const int64_t now = gateways_->Taken().granted;
      return WaitUntil([&] { return gateways_->Taken().granted >= now + kConcurrent; }, 60'000, 20);
    };
    ASSERT_TRUE(granted_again());
    const int64_t begun_us = MonotonicUs();
    const int64_t local_before = gateways_->Taken().local;
    begin();
    if (!redis_lives) SleepMs(Seconds() * 500);
    ASSERT_TRUE(mend());
    const int64_t mended_us = MonotonicUs();
    // Slots that a gateway granted by its local share end, and Redis decides again.
    SleepMs(2 * kRunMs);
    const int64_t settled_us = MonotonicUs();
    const int64_t local_until = gateways_->Taken().local;
    ASSERT_TRUE(granted_again());
    SleepMs(Seconds() * 500);
    const Gateways::Count count = gateways_->StopLoad();
    EXPECT_EQ(count.failed, 0) << count.failure;
    const auto before = gateways_->MostRunning(0, begun_us);
    const auto during = gateways_->MostRunning(begun_us, settled_us);
    const auto after = gateways_->MostRunning(settled_us, MonotonicUs());
    // No slot is granted by a local share while Redis responds, except for a few on a machine that
    // stalls.
    EXPECT_LE(before.first, kConcurrent + local_before) << before.second;
    EXPECT_LE(after.first, kConcurrent + count.local - local_until) << after.second;
    EXPECT_GE(after.first, kConcurrent - 2) << "the limit is used";
    EXPECT_LE(during.first,
              kConcurrent + (redis_lives ? local_until - local_before : 3 * kConcurrent * 12 / 40))
        << during.second;
    std::printf("CONCURRENCY part=%s limit=%lld before=%lld during=%lld after=%lld fault_s=%.1f\n",
                name, static_cast<long long>(kConcurrent), static_cast<long long>(before.first),
                static_cast<long long>(during.first), static_cast<long long>(after.first),
                static_cast<double>(mended_us - begun_us) / 1e6);
  }

  std::unique_ptr<Gateways> gateways_;
  // The last fault: admissions while it lasted, and its duration.
  double during_ = 0, fault_s_ = 0;
};

TEST_F(GatewaysTest, TenTimesTheLimitAndTheFaultsOfOneRedis) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  ASSERT_NO_FATAL_FAILURE(Use(redis->url()));
  ASSERT_NO_FATAL_FAILURE(Rate());
  ASSERT_NO_FATAL_FAILURE(Concurrency());
  ASSERT_NO_FATAL_FAILURE(Fault(
      "stop", [&] { redis->process().Signal(SIGSTOP); },
      [&] {
        redis->process().Signal(SIGCONT);
        return true;
      }));
  ASSERT_NO_FATAL_FAILURE(
      Fault("flush", [&] { EXPECT_EQ(redis->Command({"FLUSHALL"}), "OK"); }, [] { return true; }));
  ASSERT_NO_FATAL_FAILURE(
      Fault("kill", [&] { redis->process().Kill(); }, [&] { return redis->Run(); }));
}

TEST_F(GatewaysTest, ConcurrencyStaysWithinTheLimitWhateverRedisLoses) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  ASSERT_NO_FATAL_FAILURE(Use(redis->url()));
  ASSERT_NO_FATAL_FAILURE(ConcurrencyFault(
      "flush", true, [&] { EXPECT_EQ(redis->Command({"FLUSHALL"}), "OK"); }, [] { return true; }));
  ASSERT_NO_FATAL_FAILURE(ConcurrencyFault(
      "stop", false, [&] { redis->process().Signal(SIGSTOP); },
      [&] {
        redis->process().Signal(SIGCONT);
        return true;
      }));
  ASSERT_NO_FATAL_FAILURE(ConcurrencyFault(
      "kill", false, [&] { redis->process().Kill(); }, [&] { return redis->Run(); }));
}

TEST_F(GatewaysTest, ConcurrencyStaysWithinTheLimitAfterAFailoverOfTheSentinels) {
  const auto group = TestSentinels::Start();
  ASSERT_NE(group, nullptr);
  ASSERT_NO_FATAL_FAILURE(Use(group->url()));
  ASSERT_NO_FATAL_FAILURE(ConcurrencyFault(
      "failover", false, [&] { group->master->process().Kill(); },
      [&] { return FailedOver(*group); }));
}

// Each gateway has its part of 1.2 times the limit, by their number, starting from what was left
// when a limiter last responded: the burst is spent.
TEST_F(GatewaysTest, WithoutAnyLimiterTheGatewaysTogetherStayWithin120Percent) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  ASSERT_NO_FATAL_FAILURE(Use(redis->url()));
  ASSERT_NO_FATAL_FAILURE(Fault(
      "limiters", [&] { gateways_->KillLimiters(); },
      [&] { return gateways_->RestartLimiters().empty(); }));
  // At least one a minute per gateway (the rule for the smallest limits), and one in progress.
  EXPECT_LE(during_, 1.2 * PerSecond() * fault_s_ + 2 * Gateways::kGateways);
}

TEST_F(GatewaysTest, AFailoverOfTheSentinelsIsFollowed) {
  const auto group = TestSentinels::Start();
  ASSERT_NE(group, nullptr);
  ASSERT_NO_FATAL_FAILURE(Use(group->url()));
  ASSERT_NO_FATAL_FAILURE(Fault(
      "failover", [&] { group->master->process().Kill(); }, [&] { return FailedOver(*group); }));
}

}  // namespace
}  // namespace tollgate::test
