// Limits under ten times their rate, with three ratelimit processes on one Redis and four gateways'
// clients. A short run here; ./dev prove limits runs it in full.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>

#include "tests/limits/limiters.h"
#include "tests/support/redis.h"

namespace tollgate::test {
namespace {

using tollgate::testing::TestRedis;
using tollgate::testing::TestSentinels;

// Seconds of load per part.
int64_t Seconds() {
  const char* text = std::getenv("TOLLGATE_LIMITS_SECONDS");
  return text == nullptr ? 6 : std::max(3, std::atoi(text));
}

// A full run has the machine to itself.
bool InFull() { return std::getenv("TOLLGATE_LIMITS_SECONDS") != nullptr; }

// A pause of this machine must not look like a fault of Redis, and a client waits for 500 ms…
std::string Settings(const std::string& url) {
  return "  redis_url: " + url + "\n" + (InFull() ? "" : "  redis_timeout_ms: 300\n");
}
// … even less so for exact counts.
std::string PatientSettings(const std::string& url) {
  return "  redis_url: " + url + "\n  redis_timeout_ms: 5000\n";
}

// Ten times this many requests are made.
constexpr int64_t kPerMinute = 6000;

Limiters::Load TenTimesTheRate() {
  Limiters::Load load;
  load.limits.set_requests_per_minute(kPerMinute);
  load.callers = 100;
  load.pause_ms = 100;
  return load;
}

// What a limit admits in this time: its burst plus its rate.
double Admitted(double seconds) { return static_cast<double>(kPerMinute) * (1 + seconds / 60); }

// A line of docs/proofs.md. deviation: in percent; 0 where the limit has no rate.
void Report(const char* part, double seconds, int64_t limit, const Limiters::Count& count,
            double deviation) {
  std::printf(
      "LIMITS part=%s seconds=%.1f limit=%lld granted=%lld refused=%lld failed=%lld local=%lld "
      "deviation=%.2f most=%lld\n",
      part, seconds, static_cast<long long>(limit), static_cast<long long>(count.granted),
      static_cast<long long>(count.refused), static_cast<long long>(count.failed),
      static_cast<long long>(count.local), deviation, static_cast<long long>(count.most_running));
}

double Deviation(const Limiters::Count& count, double seconds) {
  return 100 * (static_cast<double>(count.granted) / Admitted(seconds) - 1);
}

TEST(Limits, TenTimesTheRateIsAdmittedToOnePercent) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, PatientSettings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  Limiters::Load load = TenTimesTheRate();
  // The burst is spent first, so that a short run refuses as well.
  load.pause_ms = 10;
  const int64_t from_us = MonotonicUs();
  limiters.StartLoad(load);
  ASSERT_TRUE(WaitUntil([&] { return limiters.Taken().refused > 0; }, 60'000, 1));
  SleepMs(Seconds() * 1000);
  const Limiters::Count count = limiters.StopLoad();
  const double seconds = static_cast<double>(MonotonicUs() - from_us) / 1e6;
  EXPECT_EQ(count.local, 0);
  EXPECT_LE((InFull() ? 100 : 5) * count.failed, count.granted + count.refused);
  EXPECT_GT(count.refused, count.granted / 10);
  // Never more; fewer when other work delayed the clients.
  EXPECT_LE(static_cast<double>(count.granted), 1.01 * Admitted(seconds));
  EXPECT_GE(static_cast<double>(count.granted), (InFull() ? 0.99 : 0.8) * Admitted(seconds));
  Report("rate", seconds, kPerMinute, count, Deviation(count, seconds));
}

TEST(Limits, ConcurrencyIsNeverAboveTheLimit) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, PatientSettings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  Limiters::Load load;
  load.limits.set_concurrent_requests(20);
  load.callers = 200;
  load.pause_ms = 20;
  load.hold_ms = 50;
  limiters.StartLoad(load);
  SleepMs(Seconds() * 1000);
  EXPECT_TRUE(WaitUntil([&] { return limiters.Taken().granted > 20 * Seconds(); }, 60'000));
  const Limiters::Count count = limiters.StopLoad();
  EXPECT_EQ(count.local, 0);
  EXPECT_LE(count.most_running, 20);
  EXPECT_GE(count.most_running, 18) << "the limit is used";
  Report("concurrency", static_cast<double>(Seconds()), 20, count, 0);
}

// A fault of Redis while ten times the rate is requested. It never fails open: total admissions
// stay below 1.2 times the limit plus one per cent. It never fails closed: requests are admitted
// all the time.
template <typename Break, typename Mend>
void FaultUnderLoad(const char* name, Limiters& limiters, const Break& break_redis,
                    const Mend& mend) {
  Limiters::Load load = TenTimesTheRate();
  load.pause_ms = 20;
  const int64_t from_us = MonotonicUs();
  limiters.StartLoad(load);
  ASSERT_TRUE(WaitUntil([&] { return limiters.Taken().refused > 0; }, 60'000, 1));
  const int64_t before = limiters.Taken().granted;
  break_redis();
  const int64_t broken_us = MonotonicUs();
  SleepMs(Seconds() * 500);
  const int64_t during = limiters.Taken().granted - before;
  const double fault_s = static_cast<double>(MonotonicUs() - broken_us) / 1e6;
  ASSERT_TRUE(mend()) << name;
  // Redis decides again: no more local grants.
  int64_t local = -1;
  ASSERT_TRUE(WaitUntil(
      [&] {
        const int64_t now = limiters.Taken().local;
        return std::exchange(local, now) == now;
      },
      20'000, 500));
  SleepMs(Seconds() * 500);
  const Limiters::Count count = limiters.StopLoad();
  const double seconds = static_cast<double>(MonotonicUs() - from_us) / 1e6;
  const double rate = static_cast<double>(kPerMinute) / 60;
  EXPECT_LE((InFull() ? 100 : 5) * count.failed, count.granted + count.refused) << name;
  EXPECT_GE(static_cast<double>(during), 0.3 * rate * fault_s) << name << ": failed closed";
  EXPECT_LE(static_cast<double>(during), 1.5 * rate * fault_s + rate) << name << ": failed open";
  EXPECT_LE(static_cast<double>(count.granted), 1.05 * Admitted(seconds) + 0.2 * rate * fault_s)
      << name << ": a second burst";
  Report(name, seconds, kPerMinute, count, Deviation(count, seconds));
}

TEST(Limits, AKilledRedisNeitherOpensNorClosesTheLimits) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, Settings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  FaultUnderLoad("kill", limiters, [&] { redis->process().Kill(); }, [&] { return redis->Run(); });
}

TEST(Limits, AStoppedRedisNeitherOpensNorClosesTheLimits) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, Settings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  FaultUnderLoad(
      "stop", limiters, [&] { redis->process().Signal(SIGSTOP); },
      [&] {
        redis->process().Signal(SIGCONT);
        return true;
      });
}

TEST(Limits, AFlushedRedisGrantsNoSecondBurst) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, Settings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  FaultUnderLoad(
      "flush", limiters, [&] { EXPECT_EQ(redis->Command({"FLUSHALL"}), "OK"); },
      [] { return true; });
}

TEST(Limits, AFailoverOfTheSentinelsIsFollowed) {
  const auto group = TestSentinels::Start();
  ASSERT_NE(group, nullptr);
  Limiters limiters(3, 4, Settings(group->url()));
  ASSERT_TRUE(limiters.Start());
  FaultUnderLoad(
      "failover", limiters, [&] { group->master->process().Kill(); },
      [&] {
        // Sentinels without CPU time for two seconds do nothing for the next 30.
        return WaitUntil([&] { return group->MasterPort() == group->replica->port(); }, 90'000, 50);
      });
}

// Slots of running requests survive a flush: gateways report them when they renew, and no other
// slot is granted until then.
TEST(Limits, AfterAFlushTheRunningRequestsAreCountedAgain) {
  const auto redis = TestRedis::Start();
  ASSERT_NE(redis, nullptr);
  Limiters limiters(3, 4, Settings(redis->url()));
  ASSERT_TRUE(limiters.Start());
  Limiters::Load load;
  load.limits.set_concurrent_requests(10);
  load.callers = 40;
  load.pause_ms = 20;
  load.hold_ms = 8'000;
  limiters.StartLoad(load);
  ASSERT_TRUE(WaitUntil([&] { return limiters.Taken().granted >= 10; }, 10'000));
  EXPECT_EQ(redis->Command({"FLUSHALL"}), "OK");
  const int64_t granted = limiters.Taken().granted;
  // Running requests are counted again within one renewal interval; no slot is granted before.
  EXPECT_TRUE(WaitUntil([&] { return limiters.Taken().granted > granted + 5; }, 30'000, 20));
  EXPECT_LE(limiters.StopLoad().most_running, 10);
}

// Several processes without a shared store are refused with an error that names the setting.
TEST(Limits, SeveralProcessesWithoutASharedStoreDoNotStart) {
  Limiters limiters(1, 1, "  replicas: 3\n");
  EXPECT_FALSE(limiters.Start());
  EXPECT_NE(limiters.process(0).LogTail().find("redis_url"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::test
