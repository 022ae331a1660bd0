// Passes messages from gRPC's threads to a loop, in order. All waiting messages share one Post, so
// a burst costs one wake-up.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/runtime/loop.h"

namespace tollgate {

template <typename Item>
class Inbox : public std::enable_shared_from_this<Inbox<Item>> {
 public:
  // `take` runs on the loop with all waiting messages, in order; never after Close.
  using Take = std::function<void(std::vector<Item>)>;

  Inbox(Loop& loop, Take take) : loop_(loop), take_(std::move(take)) {}

  // Callable from any thread.
  void Put(Item item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
      if (items_.size() > 1) return;  // a Post is already pending
    }
    loop_.Post([self = this->shared_from_this()] { self->Deliver(); });
  }

  // Call it on the loop, or after the loop has stopped.
  void Close() { take_ = nullptr; }

 private:
  void Deliver() {
    std::vector<Item> items;
    {
      std::lock_guard lock(mutex_);
      items.swap(items_);
    }
    Take take = take_;  // `take` may call Close
    if (take) take(std::move(items));
  }

  Loop& loop_;
  Take take_;
  std::mutex mutex_;
  std::vector<Item> items_;
};

}  // namespace tollgate
