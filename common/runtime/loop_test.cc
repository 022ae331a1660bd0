#include "common/runtime/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "common/base/clock.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate {
namespace {

using testing::RunOn;
using testing::RunTask;

TEST(Loop, RunsPostedCallbacksInOrderOnItsOwnThread) {
  LoopPool pool(2);
  pool.Start();
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) pool.loop(1).Post([&order, i] { order.push_back(i); });
  int index = RunOn(pool.loop(1), [](Loop& loop) -> Task<int> {
    EXPECT_EQ(Loop::Current(), &loop);
    co_return loop.index();
  });
  EXPECT_EQ(index, 1);
  ASSERT_EQ(order.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
  EXPECT_EQ(Loop::Current(), nullptr);
}

TEST(Loop, RunAndWaitReturnsAfterTheCallbackRanOnTheLoop) {
  LoopPool pool(2);
  pool.Start();
  int index = -1;
  pool.loop(1).RunAndWait([&] { index = Loop::Current()->index(); });
  EXPECT_EQ(index, 1);
}

TEST(Loop, EndOfTurnRunsOnceAfterEverythingThatWasReady) {
  std::vector<int> order = RunTask([](Loop& loop) -> Task<std::vector<int>> {
    std::vector<int> order;
    Event done(loop);
    loop.Post([&] {
      order.push_back(1);
      loop.AtEndOfTurn([&] {
        order.push_back(9);
        done.Set();
      });
    });
    for (int i = 2; i <= 4; ++i) loop.Post([&order, i] { order.push_back(i); });
    co_await done.Wait();
    co_return order;
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 9}));
}

TEST(Loop, TimersRunInOrderNeverEarlyAndNotWhenCancelled) {
  std::vector<int> order = RunTask([](Loop& loop) -> Task<std::vector<int>> {
    std::vector<int> order;
    Event done(loop);
    int64_t start = SystemClock::Get().MonotonicUs();
    loop.RunAfter(60, [&] {
      EXPECT_GE(SystemClock::Get().MonotonicUs() - start, 60'000);
      order.push_back(3);
      done.Set();
    });
    // Set later but due earlier, so the loop must re-arm its timer.
    loop.RunAfter(20, [&] { order.push_back(1); });
    Loop::TimerId cancelled = loop.RunAfter(30, [&] { order.push_back(2); });
    loop.CancelTimer(cancelled);
    co_await done.Wait();
    co_return order;
  });
  EXPECT_EQ(order, (std::vector<int>{1, 3}));
}

TEST(Loop, SleepsAtLeastTheGivenTime) {
  int64_t slept_us = RunTask([](Loop& loop) -> Task<int64_t> {
    int64_t start = SystemClock::Get().MonotonicUs();
    co_await loop.Sleep(30);
    co_return SystemClock::Get().MonotonicUs() - start;
  });
  EXPECT_GE(slept_us, 30'000);
}

TEST(Loop, DestroyingThePoolDestroysSleepingCoroutines) {
  auto alive = std::make_shared<int>(1);
  {
    LoopPool pool(1);
    pool.Start();
    auto sleep = [](Loop& loop, std::shared_ptr<int> held) -> Task<void> {
      co_await loop.Sleep(1'000'000);
      (void)held;
    };
    pool.loop(0).Spawn(sleep(pool.loop(0), alive));
    RunOn(pool.loop(0), [](Loop& loop) -> Task<int> { co_return 0; });
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

Task<void> Throw() {
  throw std::runtime_error("thrown by the test");
  co_return;
}

TEST(LoopDeathTest, AnUncaughtExceptionAbortsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        LoopPool pool(1);
        pool.Start();
        pool.loop(0).Spawn(Throw());
        for (;;) std::this_thread::yield();
      },
      "thrown by the test");
}

TEST(LoopPool, NextIsRoundRobin) {
  LoopPool pool(3);
  int first = pool.Next().index();
  EXPECT_EQ(pool.Next().index(), (first + 1) % 3);
  EXPECT_EQ(pool.Next().index(), (first + 2) % 3);
  EXPECT_EQ(pool.Next().index(), first);
}

TEST(LoopPool, StopWaitsForOutsideWork) {
  LoopPool pool(1);
  pool.Start();
  std::atomic<bool> handled{false};
  auto outside = std::make_unique<OutsideWork>(pool.loop(0));
  std::thread caller([&] {
    outside->loop().Post([&] { handled = true; });
    // The posted callback runs although only the pool waits for it.
    while (!handled) std::this_thread::yield();
    outside.reset();
  });
  pool.Stop();
  EXPECT_TRUE(handled);
  caller.join();
}

}  // namespace
}  // namespace tollgate
