#include "common/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "common/runtime/testing/run_coro.h"

namespace tollgate {
namespace {

using testing::RunOn;
using testing::RunTask;

TEST(RunOnPool, RunsOnAThreadOfThePoolAndResumesOnTheLoop) {
  ThreadPool pool(1, 10, "test");
  RunTask([&](Loop& loop) -> Task<int> {
    const std::thread::id here = std::this_thread::get_id();
    auto function = [text = std::string("abc")] {
      return std::make_pair(text + "d", std::this_thread::get_id());
    };
    const auto value = co_await RunOnPool(pool, loop, std::move(function));
    EXPECT_TRUE(value.has_value());
    EXPECT_EQ(value->first, "abcd");
    EXPECT_NE(value->second, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    co_return 0;
  });
}

TEST(RunOnPool, IsEmptyWhenTheQueueIsFullAndDoesNotRunTheFunction) {
  ThreadPool pool(1, 1, "test");
  std::promise<void> release;
  std::promise<void> started;
  EXPECT_TRUE(pool.Submit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(pool.Submit([] {}));  // fills the queue
  RunTask([&](Loop& loop) -> Task<int> {
    bool ran = false;
    auto function = [&ran] { return ran = true; };
    const auto value = co_await RunOnPool(pool, loop, function);
    EXPECT_FALSE(value.has_value());
    EXPECT_FALSE(ran);
    co_return 0;
  });
  release.set_value();
}

// A connection that is destroyed at shutdown must not destroy data that the function uses.
TEST(RunOnPool, TheFunctionOutlivesACoroutineThatIsDestroyed) {
  ThreadPool pool(1, 10, "test");
  std::promise<void> started;
  std::promise<void> release;
  std::promise<size_t> seen;
  auto loops = std::make_unique<LoopPool>(1);
  loops->Start();
  Loop& loop = loops->loop(0);
  loop.Post([&] {
    auto function = [&, text = std::string(100'000, 'x')] {
      started.set_value();
      release.get_future().wait();
      seen.set_value(text.size());
      return 0;
    };
    loop.Spawn([](ThreadPool& pool, Loop& loop, auto function) -> Task<void> {
      (void)co_await RunOnPool(pool, loop, std::move(function));
    }(pool, loop, std::move(function)));
  });
  started.get_future().wait();
  // Stop gives up after some seconds and destroys the coroutine. Then the work ends.
  std::thread stopper([&] { loops->Stop(); });
  stopper.join();
  release.set_value();
  EXPECT_EQ(seen.get_future().get(), 100'000u);
  pool.Stop();
  loops.reset();
}

}  // namespace
}  // namespace tollgate
