// Threads for work that would block a loop: blocking calls, and computations of more than about a
// millisecond.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "common/runtime/task.h"

namespace tollgate {

// Most bytes of JSON that a loop decodes in one piece: one to two milliseconds of work. A pool
// decodes larger texts.
inline constexpr size_t kMaxBytesDecodedOnLoop = size_t{256} * 1024;

// A few threads. The queue is bounded: excess work is refused, not delayed.
class ThreadPool {
 public:
  ThreadPool(int threads, size_t max_queued, const char* name);
  ~ThreadPool();  // Stop
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Returns false if the queue is full or the pool has stopped.
  bool Submit(std::function<void()> work);
  // Runs the queued work, then joins the threads.
  void Stop();

 private:
  void Run();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

namespace internal {

// Shared by the coroutine and the thread, either of which may end first.
template <typename Function, typename Value>
struct PoolJob {
  PoolJob(Loop& loop, Function work)
      : function(std::move(work)), outside(std::make_unique<OutsideWork>(loop)) {}
  Function function;
  std::optional<Value> value;
  Waiter* waiter = nullptr;              // loop's thread only; null once the coroutine is destroyed
  std::unique_ptr<OutsideWork> outside;  // until the thread has posted the value
};

}  // namespace internal

// Runs the function on a thread of the pool and resumes on the loop with its value. nullopt if the
// queue is full, so that the function does not run, or if it throws. It runs to its end even if the
// coroutine is destroyed meanwhile, so it must own everything that it uses.
template <typename Function>
Task<std::optional<std::invoke_result_t<Function&>>> RunOnPool(ThreadPool& pool, Loop& loop,
                                                               Function function) {
  using Job = internal::PoolJob<Function, std::invoke_result_t<Function&>>;
  auto job = std::make_shared<Job>(loop, std::move(function));
  Waiter waiter(loop);
  struct Guard {
    Job& job;
    ~Guard() { job.waiter = nullptr; }
  } guard{*job};
  job->waiter = &waiter;
  std::function<void()> work = [job]() mutable {
    try {
      job->value.emplace(job->function());
    } catch (const std::exception&) {
      // Most likely out of memory: the caller refuses the request, and the process continues.
    }
    std::unique_ptr<OutsideWork> outside = std::move(job->outside);
    outside->loop().Post([job = std::move(job)] {
      if (job->waiter != nullptr) job->waiter->ResumeNow(true);
    });
  };
  if (!pool.Submit(std::move(work))) co_return std::nullopt;
  if (!co_await waiter.Suspend()) co_return std::nullopt;
  co_return std::move(job->value);
}

}  // namespace tollgate
