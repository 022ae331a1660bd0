#include "gateway/worker/keyed_queue.h"

namespace tollgate::gateway {

Task<KeyedQueue::Ticket> KeyedQueue::Acquire(std::string key) {
  const std::shared_ptr<KeyedQueue> self = shared_from_this();
  std::unique_ptr<Waiters>& entry = locked_[key];
  if (entry == nullptr) {
    entry = std::make_unique<Waiters>(loop_);
    co_return Ticket(self, std::move(key));
  }
  Waiters& waiters = *entry;
  if (waiters.count >= max_waiting_) co_return Ticket();
  ++waiters.count;
  // Release keeps the entry while its count is above 0.
  const bool acquired = co_await waiters.next.Wait();
  --waiters.count;
  if (!acquired) co_return Ticket();  // the loop is stopping
  co_return Ticket(self, std::move(key));
}

void KeyedQueue::Release(const std::string& key) {
  const auto found = locked_.find(key);
  if (found == locked_.end()) return;
  if (found->second->count > 0) {
    found->second->next.NotifyOne();
  } else {
    locked_.erase(found);
  }
}

}  // namespace tollgate::gateway
