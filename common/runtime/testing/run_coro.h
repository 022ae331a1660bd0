// For tests: runs a coroutine to its end and returns its result. GoogleTest's ASSERT_* macros do
// not compile in coroutines: return values and assert outside, or use EXPECT_*.
#pragma once

#include <exception>
#include <future>
#include <type_traits>
#include <utility>

#include "common/runtime/loop.h"

namespace tollgate::testing {

namespace internal {
template <typename T>
Task<void> Deliver(Task<T> task, std::promise<T>& promise) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      promise.set_value();
    } else {
      promise.set_value(co_await std::move(task));
    }
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}
}  // namespace internal

// Runs the Task<T> that make(loop) returns on a running loop and waits for its result. The callable
// outlives the coroutine, so it may be a lambda with captures. Not on the thread of a loop.
template <typename Make>
auto RunOn(Loop& loop, Make make) {
  using T = typename decltype(make(loop))::value_type;
  std::promise<T> promise;
  auto future = promise.get_future();
  loop.Post([&] { loop.Spawn(internal::Deliver<T>(make(loop), promise)); });
  return future.get();
}

// As above, on a temporary loop:
//   int n = RunTask([](Loop& loop) -> Task<int> { co_await loop.Sleep(10); co_return 1; });
template <typename Make>
auto RunTask(Make make) {
  LoopPool pool(1);
  pool.Start();
  return RunOn(pool.loop(0), std::move(make));
}

}  // namespace tollgate::testing
