// Event loops: one thread each, one per processor. What a request owns lives on one loop and is
// touched by that loop's thread only; other threads (gRPC's callbacks) may only Post.
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
  // Names a timer; 0 is no timer.
  using TimerId = uint64_t;

  virtual ~Loop() = default;

  virtual asio::io_context& context() = 0;
  Executor executor() { return context().get_executor(); }
  // Place of this loop in its pool.
  virtual int index() const = 0;
  // The loop whose thread this is; null on any other thread.
  static Loop* Current();

  // Runs the callback on this loop, from any thread, in order of posting.
  virtual void Post(Callback callback) = 0;
  // Runs the callback once everything that is ready now has run: gathers what belongs into one
  // write. This loop's thread only.
  virtual void AtEndOfTurn(Callback callback) = 0;
  // Starts a coroutine on this loop. What it lets escape is a bug: the process stops with a
  // message.
  virtual void Spawn(Task<void> task) = 0;
  // One coarse wheel for all timers of the loop (about 10 ms): cheap to set and to cancel. Never
  // early. This loop's thread only.
  virtual TimerId RunAfter(int64_t delay_ms, Callback callback) = 0;
  virtual void CancelTimer(TimerId timer) = 0;
  // Suspends the calling coroutine. This loop's thread only.
  virtual Task<void> Sleep(int64_t delay_ms) = 0;

 private:
  friend class OutsideWork;
  friend class LoopPool;
  friend class Waiter;
  // Every coroutine that is suspended in a Waiter of this loop, to be destroyed with the loop.
  Waiter* suspended_ = nullptr;
  // How many calls of other threads will still post here.
  std::atomic<int64_t> outside_work_{0};
};

// Held by what runs elsewhere (a call that gRPC answers) and will post to a loop: a pool that stops
// waits for it. Let go after the last Post.
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
  // Waits for outside work to end (with a limit), then ends and joins the threads. What is still
  // queued then is dropped when the pool is destroyed.
  void Stop();

 private:
  void WaitForOutsideWork() const;
  struct State;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<State> state_;
};

}  // namespace tollgate
