// Timers are never early and at most one tick late; cancelled timers never run.
#include "common/runtime/timer_wheel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tollgate {
namespace {

constexpr int64_t kMs = 1000;

TEST(TimerWheel, RunsAtTheFirstTickNotBeforeTheDelay) {
  int64_t now = 123'456'789;
  TimerWheel wheel(now);
  int ran = 0;
  wheel.Add(now, 25 * kMs, [&] { ++ran; });
  wheel.Advance(now + 24 * kMs);
  EXPECT_EQ(ran, 0);
  wheel.Advance(now + 25 * kMs + TimerWheel::kTickUs);
  EXPECT_EQ(ran, 1);
  wheel.Advance(now + 1000 * kMs);
  EXPECT_EQ(ran, 1);
}

TEST(TimerWheel, ACancelledTimerNeverRunsAndItsIdIsNotReused) {
  TimerWheel wheel(0);
  int first = 0;
  int second = 0;
  TimerWheel::Id old_id = wheel.Add(0, 10 * kMs, [&] { ++first; });
  wheel.Cancel(old_id);
  wheel.Add(0, 10 * kMs, [&] { ++second; });
  wheel.Cancel(old_id);
  wheel.Cancel(0);
  wheel.Advance(100 * kMs);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(wheel.size(), 0);
}

TEST(TimerWheel, CallbacksMayAddAndCancelOthers) {
  TimerWheel wheel(0);
  std::vector<int> ran;
  TimerWheel::Id victim = 0;
  wheel.Add(0, 20 * kMs, [&] {
    ran.push_back(1);
    wheel.Cancel(victim);
    wheel.Add(20 * kMs, 0, [&] { ran.push_back(3); });
  });
  victim = wheel.Add(0, 30 * kMs, [&] { ran.push_back(2); });
  wheel.Advance(20 * kMs);
  EXPECT_EQ(ran, (std::vector<int>{1}));
  wheel.Advance(60 * kMs);
  EXPECT_EQ(ran, (std::vector<int>{1, 3}));
}

TEST(TimerWheel, NextUsIsNeverLaterThanTheEarliestTimer) {
  TimerWheel wheel(0);
  EXPECT_EQ(wheel.NextUs(), TimerWheel::kNever);
  wheel.Add(0, 60'000 * kMs, [] {});
  EXPECT_LE(wheel.NextUs(), 60'000 * kMs);
  TimerWheel::Id soon = wheel.Add(0, 40 * kMs, [] {});
  EXPECT_EQ(wheel.NextUs(), 40 * kMs);
  wheel.Cancel(soon);
  EXPECT_GT(wheel.NextUs(), 40 * kMs);
}

// Random timers of up to three revolutions, advanced by random steps of up to two revolutions.
TEST(TimerWheel, RandomTimersRunOnceInTheirWindow) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    int64_t now = random();
    TimerWheel wheel(now);
    int64_t previous = now;
    int ran = 0;
    int added = 0;
    int cancelled = 0;
    std::map<int, TimerWheel::Id> open;
    for (int step = 0; step < 400; ++step) {
      for (uint32_t i = random() % 4; i > 0; --i) {
        int64_t delay = random() % 15'000'000;
        int64_t due = now + delay;
        int name = added++;
        open[name] = wheel.Add(now, delay, [&, due, name] {
          ++ran;
          open.erase(name);
          EXPECT_GE(now, due) << "early, seed " << seed;
          EXPECT_LT(previous, due + TimerWheel::kTickUs) << "late, seed " << seed;
        });
      }
      if (!open.empty() && random() % 5 == 0) {
        wheel.Cancel(open.begin()->second);
        open.erase(open.begin());
        ++cancelled;
      }
      previous = now;
      now += random() % (random() % 10 == 0 ? 12'000'000 : 30'000);
      wheel.Advance(now);
    }
    previous = now;
    now += 20'000'000;
    wheel.Advance(now);
    EXPECT_EQ(ran + cancelled, added) << "seed " << seed;
    EXPECT_EQ(wheel.size(), 0);
  }
}

}  // namespace
}  // namespace tollgate
