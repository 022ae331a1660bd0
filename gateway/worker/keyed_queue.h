// A mutex per key with a bounded FIFO queue of waiters. For work that is free for the client but
// expensive for the server: one call per key runs at a time, and a client that queues too many is
// refused. One loop only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/runtime/notify.h"

namespace tollgate::gateway {

class KeyedQueue : public std::enable_shared_from_this<KeyedQueue> {
 public:
  // max_waiting: waiters per key, not counting the holder.
  KeyedQueue(Loop& loop, int max_waiting) : loop_(loop), max_waiting_(max_waiting) {}

  // The lock on a key, released by the destructor. Empty (false) when it was not acquired.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(std::shared_ptr<KeyedQueue> queue, std::string key)
        : queue_(std::move(queue)), key_(std::move(key)) {}
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (queue_) queue_->Release(key_);
    }
    explicit operator bool() const { return queue_ != nullptr; }

   private:
    std::shared_ptr<KeyedQueue> queue_;
    std::string key_;
  };

  // Waits for the key's lock in FIFO order. Returns an empty ticket immediately when max_waiting
  // others are waiting, and when the loop stops.
  Task<Ticket> Acquire(std::string key);
  // Number of locked keys.
  size_t size() const { return locked_.size(); }

 private:
  struct Waiters {
    explicit Waiters(Loop& loop) : next(loop) {}
    Notify next;
    int count = 0;
  };
  void Release(const std::string& key);

  Loop& loop_;
  const int max_waiting_;
  std::unordered_map<std::string, std::unique_ptr<Waiters>> locked_;
};

}  // namespace tollgate::gateway
