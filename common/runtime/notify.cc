#include "common/runtime/notify.h"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace tollgate {

void Waiter::Link() {
  next_ = loop_.suspended_;
  if (next_ != nullptr) next_->previous_ = this;
  loop_.suspended_ = this;
}

void Waiter::Unlink() {
  if (!handler_) return;
  (previous_ != nullptr ? previous_->next_ : loop_.suspended_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  previous_ = next_ = nullptr;
}

Waiter::Handler Waiter::Take() {
  Unlink();
  Handler handler = std::move(*handler_);
  handler_.reset();
  auto slot = asio::get_associated_cancellation_slot(handler);
  if (slot.is_connected()) slot.clear();
  return handler;
}

Task<bool> Waiter::Suspend() {
  return asio::async_initiate<const asio::use_awaitable_t<Executor>, void(bool)>(
      [](auto&& handler, Waiter* self) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
          slot.assign([self](asio::cancellation_type) { self->Resume(false); });
        }
        self->handler_.emplace(std::move(handler));
        self->Link();
      },
      kUseTask, this);
}

void Waiter::ResumeNow(bool value) {
  if (!handler_) return;
  Take()(value);
}

void Waiter::Resume(bool value) {
  if (!handler_) return;
  asio::post(loop_.executor(), [handler = Take(), value]() mutable { std::move(handler)(value); });
}

void Waiter::DestroySuspended(Loop& loop) {
  // Destroying a coroutine may destroy or wake others, or end one wait and start another. So each
  // iteration starts at the head of the list.
  while (loop.suspended_ != nullptr) {
    Handler destroyed = loop.suspended_->Take();
  }
}

// Lives in the frame of the waiting coroutine.
struct Notify::Node {
  explicit Node(Notify* owner) : owner(owner), waiter(owner->loop_), loop(owner->loop_) {}
  ~Node() {
    if (timer != 0) loop.CancelTimer(timer);
    if (owner != nullptr) owner->Unlink(this);
  }

  Notify* owner;  // null once woken
  Waiter waiter;
  Loop& loop;
  Loop::TimerId timer = 0;
  Node* previous = nullptr;
  Node* next = nullptr;
};

Notify::~Notify() {
  while (first_ != nullptr) Wake(first_, false);
}

Task<bool> Notify::WaitFor(int64_t timeout_ms) {
  Node node(this);
  node.previous = last_;
  (last_ != nullptr ? last_->next : first_) = &node;
  last_ = &node;
  if (timeout_ms >= 0) {
    node.timer = loop_.RunAfter(timeout_ms, [&node] {
      node.timer = 0;
      if (node.owner != nullptr) node.owner->Wake(&node, false);
    });
  }
  // `this` may be destroyed by the time the wait ends.
  co_return co_await node.waiter.Suspend();
}

void Notify::Unlink(Node* node) {
  (node->previous != nullptr ? node->previous->next : first_) = node->next;
  (node->next != nullptr ? node->next->previous : last_) = node->previous;
  node->owner = nullptr;
}

void Notify::Wake(Node* node, bool value) {
  Unlink(node);
  node->waiter.Resume(value);
}

void Notify::NotifyOne() {
  if (first_ != nullptr) Wake(first_, true);
}

void Notify::NotifyAll() {
  // Woken coroutines run later, so the queue cannot grow in this loop.
  while (first_ != nullptr) Wake(first_, true);
}

}  // namespace tollgate
