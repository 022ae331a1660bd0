#include "common/runtime/notify.h"

#include <gtest/gtest.h>

#include "common/runtime/testing/run_coro.h"

namespace tollgate {
namespace {

using testing::RunTask;

Task<void> Count(Notify& notify, int& woken, int& failed) {
  (co_await notify.Wait() ? woken : failed) += 1;
}

TEST(Notify, WakesOneOrAllAndFailsWaitersWhenDestroyed) {
  RunTask([](Loop& loop) -> Task<int> {
    int woken = 0;
    int failed = 0;
    {
      Notify notify(loop);
      notify.NotifyAll();  // no waiters yet: has no effect
      for (int i = 0; i < 5; ++i) loop.Spawn(Count(notify, woken, failed));
      co_await loop.Sleep(0);
      EXPECT_EQ(woken, 0);
      notify.NotifyOne();
      co_await loop.Sleep(0);
      EXPECT_EQ(woken, 1);
      for (int i = 0; i < 2; ++i) notify.NotifyOne();
      co_await loop.Sleep(0);
      EXPECT_EQ(woken, 3);
      EXPECT_TRUE(notify.has_waiters());
    }
    co_await loop.Sleep(0);
    EXPECT_EQ(failed, 2);
    co_return 0;
  });
}

TEST(Notify, TimesOutAndLeavesTheQueue) {
  RunTask([](Loop& loop) -> Task<int> {
    Notify notify(loop);
    EXPECT_FALSE(co_await notify.WaitFor(10));
    EXPECT_FALSE(notify.has_waiters());
    loop.RunAfter(10, [&] { notify.NotifyAll(); });
    EXPECT_TRUE(co_await notify.WaitFor(60'000));
    co_return 0;
  });
}

TEST(Event, StaysSetUntilReset) {
  RunTask([](Loop& loop) -> Task<int> {
    Event event(loop);
    EXPECT_FALSE(co_await event.WaitFor(10));
    event.Set();
    EXPECT_TRUE(co_await event.Wait());
    EXPECT_TRUE(co_await event.Wait());
    event.Reset();
    EXPECT_FALSE(co_await event.WaitFor(10));
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate
