// Waiting of coroutines for each other, within one loop. Nothing here may be touched from another
// thread: Post to the loop first. Whoever is woken resumes in a handler of its own, never inside
// the call that wakes it.
#pragma once

#include <boost/asio/async_result.hpp>
#include <cstdint>
#include <optional>

#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate {

// One suspended coroutine; lives in that coroutine's frame. The building block of the rest.
class Waiter {
 public:
  explicit Waiter(Loop& loop) : loop_(loop) {}
  ~Waiter() { Unlink(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Suspends until Resume; gives its argument. Once at a time. False as well when the coroutine's
  // operation is cancelled (awaitable operators).
  Task<bool> Suspend();
  // Does nothing when nobody is suspended.
  void Resume(bool value);
  // The same within this call. Only where no coroutine of the loop is running further up the stack:
  // in a handler or a timer.
  void ResumeNow(bool value);
  bool suspended() const { return handler_.has_value(); }
  // Destroys what is suspended on a loop that will not run again. Without it such coroutines would
  // own themselves for ever: the handler stands in the frame that it keeps.
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

// Wakes coroutines. Remembers nothing: whoever is not waiting yet misses the call.
class Notify {
 public:
  explicit Notify(Loop& loop) : loop_(loop) {}
  // Those that still wait wake up with false.
  ~Notify();
  Notify(const Notify&) = delete;
  Notify& operator=(const Notify&) = delete;

  // True when notified.
  Task<bool> Wait() { return WaitFor(-1); }
  // False when the time is over; negative waits for ever.
  Task<bool> WaitFor(int64_t timeout_ms);
  // Wakes who has waited longest.
  void NotifyOne();
  // Wakes everybody who waits now.
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

// A flag to wait for.
class Event {
 public:
  explicit Event(Loop& loop) : notify_(loop) {}
  void Set() {
    set_ = true;
    notify_.NotifyAll();
  }
  void Reset() { set_ = false; }
  bool is_set() const { return set_; }
  // Returns at once when the flag is set. False when the time is over, or the event destroyed.
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
