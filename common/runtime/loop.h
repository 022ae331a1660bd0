// Event loops: one thread each, one per processor. Only the thread of its loop uses the state of a
// request; other threads (gRPC callbacks) may only Post.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/runtime/task.h"

namespace tollgate {

class Waiter;

class Loop {
 public:
  using Callback = std::function<void()>;
  // 0 means no timer.
  using TimerId = uint64_t;

  virtual ~Loop() = default;

  virtual asio::io_context& context() = 0;
  Executor executor() { return context().get_executor(); }
  // The index of this loop in its pool.
  virtual int index() const = 0;
  // The loop of this thread; null on other threads.
  static Loop* Current();

  // Runs the callback on this loop. Callable from any thread; callbacks run in posting order.
  virtual void Post(Callback callback) = 0;
  // Runs the callback on this loop and returns when it is done. Not on the thread of a loop.
  void RunAndWait(const Callback& callback);
  // Runs the callback after all handlers that are ready now, to combine their output into one
  // write. This loop's thread only.
  virtual void AtEndOfTurn(Callback callback) = 0;
  // Starts a coroutine on this loop. An uncaught exception is a bug: it is logged and the process
  // aborts.
  virtual void Spawn(Task<void> task) = 0;
  // Timers are cheap to set and to cancel, and coarse: they fire up to about 10 ms late, never
  // early (timer_wheel.h). This loop's thread only.
  virtual TimerId RunAfter(int64_t delay_ms, Callback callback) = 0;
  virtual void CancelTimer(TimerId timer) = 0;
  // Suspends the calling coroutine. This loop's thread only.
  virtual Task<void> Sleep(int64_t delay_ms) = 0;

 private:
  friend class OutsideWork;
  friend class LoopPool;
  friend class Waiter;
  // The list of Waiters with a suspended coroutine, which are destroyed with the loop.
  Waiter* suspended_ = nullptr;
  // The number of OutsideWork objects of this loop.
  std::atomic<int64_t> outside_work_{0};
};

// Held by an operation on other threads (such as a gRPC call) that will Post its result to a loop.
// LoopPool::Stop waits for it. Destroy it after the last Post.
class OutsideWork {
 public:
  explicit OutsideWork(Loop& loop) : loop_(loop) { ++loop.outside_work_; }
  ~OutsideWork() { --loop_.outside_work_; }
  OutsideWork(const OutsideWork&) = delete;
  OutsideWork& operator=(const OutsideWork&) = delete;
  Loop& loop() const { return loop_; }

 private:
  Loop& loop_;
};

// Owns the loops and their threads.
class LoopPool {
 public:
  // threads = 0: one per processor.
  explicit LoopPool(int threads = 0);
  ~LoopPool();  // Stop
  int size() const { return static_cast<int>(loops_.size()); }
  Loop& loop(int index) { return *loops_[index]; }
  // The next loop, round-robin. Thread-safe.
  Loop& Next();
  void Start();
  // Waits (with a limit) for outside work, then stops and joins the threads. Callbacks that are
  // still queued are destroyed with the pool without running.
  void Stop();

 private:
  void WaitForOutsideWork() const;
  struct State;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<State> state_;
};

}  // namespace tollgate
