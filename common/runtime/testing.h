// For tests: runs a coroutine to its end and gives back what it returned. GoogleTest's ASSERT_* do not
// compile inside coroutines: return values and assert outside, or use EXPECT_*.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <future>
#include <type_traits>
#include <utility>

#include "common/runtime/loop.h"

namespace tollgate::testing {

// Runs make(loop), which returns a Task<T>, on the given running loop and waits for it. The callable
// lives until the coroutine has ended, so capturing lambdas are safe here. Not on the loop's thread.
template <typename Make>
auto RunOn(Loop& loop, Make make) {
  using T = typename decltype(make(loop))::value_type;
  std::promise<T> promise;
  auto future = promise.get_future();
  loop.Post([&] {
    asio::co_spawn(loop.context(), make(loop), [&promise](std::exception_ptr exception, auto... value) {
      if (exception) {
        promise.set_exception(exception);
      } else {
        promise.set_value(std::move(value)...);
      }
    });
  });
  return future.get();
}

// The same on a loop of its own:
//   int n = RunTask([](Loop& loop) -> Task<int> { co_await loop.Sleep(10); co_return 1; });
template <typename Make>
auto RunTask(Make make) {
  LoopPool pool(1);
  pool.Start();
  return RunOn(pool.loop(0), std::move(make));
}

}  // namespace tollgate::testing
