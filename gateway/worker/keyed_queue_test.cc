#include "gateway/worker/keyed_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/runtime/testing/run_coro.h"

namespace tollgate::gateway {
namespace {

using tollgate::testing::RunTask;

struct Fixture {
  explicit Fixture(Loop& on) : loop(on), queue(std::make_shared<KeyedQueue>(on, 2)) {}
  Loop& loop;
  std::shared_ptr<KeyedQueue> queue;
  int running = 0;
  int max_running = 0;
  int refused = 0;
  std::vector<int> completed;
};

Task<void> RunJob(Fixture& fixture, std::string key, int number) {
  const KeyedQueue::Ticket ticket = co_await fixture.queue->Acquire(std::move(key));
  if (!ticket) {
    ++fixture.refused;
    co_return;
  }
  fixture.max_running = std::max(fixture.max_running, ++fixture.running);
  co_await fixture.loop.Sleep(1);
  --fixture.running;
  fixture.completed.push_back(number);
}

TEST(KeyedQueue, RunsOneAtATimeInOrderAndRefusesBeyondTheLimit) {
  RunTask([](Loop& loop) -> Task<int> {
    Fixture fixture(loop);
    for (int i = 0; i < 5; ++i) loop.Spawn(RunJob(fixture, "a", i));
    while (fixture.completed.size() + static_cast<size_t>(fixture.refused) < 5) {
      co_await loop.Sleep(1);
    }
    EXPECT_EQ(fixture.max_running, 1);
    EXPECT_EQ(fixture.completed, (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(fixture.refused, 2);
    EXPECT_EQ(fixture.queue->size(), 0u);
    co_return 0;
  });
}

TEST(KeyedQueue, KeysAreIndependent) {
  RunTask([](Loop& loop) -> Task<int> {
    Fixture fixture(loop);
    loop.Spawn(RunJob(fixture, "a", 0));
    loop.Spawn(RunJob(fixture, "b", 1));
    while (fixture.completed.size() < 2) co_await loop.Sleep(1);
    EXPECT_EQ(fixture.max_running, 2);
    co_return 0;
  });
}

TEST(KeyedQueue, AnAcquireDuringHandoverWaitsBehindTheNextWaiter) {
  RunTask([](Loop& loop) -> Task<int> {
    Fixture fixture(loop);
    {
      const KeyedQueue::Ticket first = co_await fixture.queue->Acquire("a");
      loop.Spawn(RunJob(fixture, "a", 0));
      co_await loop.Sleep(0);
    }
    loop.Spawn(RunJob(fixture, "a", 1));
    while (fixture.completed.size() < 2) co_await loop.Sleep(1);
    EXPECT_EQ(fixture.max_running, 1);
    EXPECT_EQ(fixture.completed, (std::vector<int>{0, 1}));
    co_return 0;
  });
}

}  // namespace
}  // namespace tollgate::gateway
