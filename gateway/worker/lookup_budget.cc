#include "gateway/worker/lookup_budget.h"

#include <algorithm>

#include "common/runtime/loop.h"

namespace tollgate::gateway {

bool LookupBudget::TryTake() {
  const int64_t now_us = clock_.MonotonicUs();
  const int64_t after_us = std::max(full_us_, now_us) + options_.interval_us;
  if (after_us - now_us > options_.interval_us * options_.burst) return false;
  full_us_ = after_us;
  return true;
}

bool LookupBudget::MayWait(const AddressSubject& subject) const {
  const auto queue = queues_.find(subject);
  if (queue == queues_.end()) return waiting_ < 2 * options_.max_waiting;
  return waiting_ < options_.max_waiting && queue->second.size() < options_.max_waiting_per_address;
}

Task<bool> LookupBudget::Take(AddressSubject subject) {
  if (turns_.empty() && TryTake()) co_return true;
  if (!MayWait(subject)) co_return false;
  const auto waiter = std::make_shared<Waiter>(loop_);
  Queue& queue = queues_[subject];
  if (queue.empty()) turns_.push_back(subject);
  queue.push_back(waiter);
  ++waiting_;
  GrantInTurn();
  (void)co_await waiter->done.WaitFor(options_.max_wait_ms);
  // Waiters that gave up stay in their queue until its next turn and are not counted.
  if (!waiter->granted && !waiter->gone) {
    waiter->gone = true;
    --waiting_;
  }
  co_return waiter->granted;
}

void LookupBudget::GiveBack() {
  full_us_ -= options_.interval_us;
  GrantInTurn();
}

void LookupBudget::GrantInTurn() {
  while (!turns_.empty()) {
    const auto queue = queues_.find(turns_.front());
    while (!queue->second.empty() && queue->second.front()->gone) queue->second.pop_front();
    if (queue->second.empty()) {
      queues_.erase(queue);
      turns_.pop_front();
      continue;
    }
    if (!TryTake()) break;
    const auto waiter = queue->second.front();
    queue->second.pop_front();
    --waiting_;
    waiter->granted = true;
    waiter->done.Set();
    if (queue->second.empty()) {
      queues_.erase(queue);
      turns_.pop_front();
    } else {
      turns_.splice(turns_.end(), turns_, turns_.begin());  // to the end of the line
    }
  }
  if (turns_.empty() || timer_set_) return;
  timer_set_ = true;
  loop_.RunAfter(std::max<int64_t>(1, options_.interval_us / 1000), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->timer_set_ = false;
    self->GrantInTurn();
  });
}

}  // namespace tollgate::gateway
