// Synchronization of coroutines on one loop. Not thread-safe: other threads must Post to the loop
// first. A woken coroutine resumes in its own handler, never within the call that wakes it (except
// by Waiter::ResumeNow).
#pragma once

#include <boost/asio/async_result.hpp>
#include <cstdint>
#include <optional>

#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate {

// Suspends one coroutine; lives in the frame of that coroutine. Notify, Event, Loop::Sleep and
// rpc::Unary are built on it.
class Waiter {
 public:
  explicit Waiter(Loop& loop) : loop_(loop) {}
  ~Waiter() { Unlink(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Suspends until Resume and returns its argument. At most one Suspend at a time. Also returns
  // false if the coroutine is cancelled (by Asio's awaitable operators).
  Task<bool> Suspend();
  // Posts the resumption to the loop. No effect if no coroutine is suspended.
  void Resume(bool value);
  // Resumes within this call. Only from a handler or timer callback with no other coroutine of the
  // loop on the stack.
  void ResumeNow(bool value);
  bool suspended() const { return handler_.has_value(); }
  // Destroys the suspended coroutines of a loop that will not run again. They would leak otherwise:
  // the frame holds the Waiter, and the Waiter's handler owns the frame.
  static void DestroySuspended(Loop& loop);

 private:
  using Handler = asio::async_result<asio::use_awaitable_t<Executor>, void(bool)>::handler_type;
  void Link();
  void Unlink();
  Handler Take();

  Loop& loop_;
  std::optional<Handler> handler_;
  Waiter* previous_ = nullptr;
  Waiter* next_ = nullptr;
};

// A condition variable for coroutines. A notification without a waiter is lost.
class Notify {
 public:
  explicit Notify(Loop& loop) : loop_(loop) {}
  // Wakes the remaining waiters; their Wait returns false.
  ~Notify();
  Notify(const Notify&) = delete;
  Notify& operator=(const Notify&) = delete;

  // Returns true when notified.
  Task<bool> Wait() { return WaitFor(-1); }
  // Returns false on a timeout. A negative timeout waits without limit.
  Task<bool> WaitFor(int64_t timeout_ms);
  // Wakes the waiter that has waited longest.
  void NotifyOne();
  // Wakes all current waiters.
  void NotifyAll();
  bool has_waiters() const { return first_ != nullptr; }

 private:
  struct Node;
  void Wake(Node* node, bool value);
  void Unlink(Node* node);

  Loop& loop_;
  Node* first_ = nullptr;
  Node* last_ = nullptr;
};

// A flag that coroutines can wait for.
class Event {
 public:
  explicit Event(Loop& loop) : notify_(loop) {}
  void Set() {
    set_ = true;
    notify_.NotifyAll();
  }
  void Reset() { set_ = false; }
  bool is_set() const { return set_; }
  // Returns true at once if the flag is set. Returns false on a timeout, or if the event is
  // destroyed.
  Task<bool> Wait() { return WaitFor(-1); }
  Task<bool> WaitFor(int64_t timeout_ms) {
    if (set_) co_return true;
    co_return co_await notify_.WaitFor(timeout_ms);
  }

 private:
  Notify notify_;
  bool set_ = false;
};

}  // namespace tollgate
