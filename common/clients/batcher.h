// Batches the calls of one loop to one service: waiting calls share a message. A call is sent at
// the end of the loop's turn; while the maximum number of batches is in flight, further calls wait
// and form the next batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "common/runtime/task.h"

namespace tollgate {

// Lives on one loop, held by shared_ptr: batches in flight keep it alive.
template <typename Item, typename Reply>
class Batcher : public std::enable_shared_from_this<Batcher<Item, Reply>> {
 public:
  // Sends one batch; returns one reply per item, in order.
  using Send =
      std::function<Task<Result<std::vector<Reply>>>(std::vector<Item> items, int64_t timeout_ms)>;
  static constexpr size_t kMaxItems = 256;
  // More than one, so that a slow batch does not block all calls; few, so that batches grow under
  // load.
  static constexpr int kMaxInFlight = 2;
  // In process a message is cheap, and the service does its own batching.
  static constexpr int kMaxInFlightDirect = 64;
  // Further calls are refused at once.
  static constexpr size_t kMaxWaiting = 16'384;

  Batcher(Loop& loop, Send send, int max_in_flight = kMaxInFlight)
      : loop_(loop), send_(std::move(send)), max_in_flight_(max_in_flight) {}

  // Returns the reply to one item. The timeout starts when its batch is sent; a batch has the
  // shortest timeout of its items.
  Task<Result<Reply>> Call(Item item, int64_t timeout_ms) {
    if (waiting_.size() >= kMaxWaiting) {
      co_return FailWith(ErrorId::kServiceUnavailable, "",
                         "too many calls are waiting for one service");
    }
    auto self = this->shared_from_this();
    auto call = std::make_shared<Pending>(loop_, std::move(item), timeout_ms);
    waiting_.push_back(call);
    if (!flush_planned_) {
      flush_planned_ = true;
      loop_.AtEndOfTurn([self] {
        self->flush_planned_ = false;
        self->Flush();
      });
    }
    co_await call->waiter.Suspend();
    if (call->reply) co_return std::move(*call->reply);
    co_return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  }

 private:
  struct Pending {
    Pending(Loop& loop, Item item, int64_t timeout_ms)
        : item(std::move(item)), timeout_ms(timeout_ms), waiter(loop) {}
    Item item;
    int64_t timeout_ms;
    std::optional<Result<Reply>> reply;
    Waiter waiter;
  };
  using Batch = std::vector<std::shared_ptr<Pending>>;

  void Flush() {
    while (!waiting_.empty() && in_flight_ < max_in_flight_) {
      size_t count = std::min(waiting_.size(), kMaxItems);
      Batch batch(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
      ++in_flight_;
      loop_.Spawn(Run(this->shared_from_this(), std::move(batch)));
    }
  }

  static Task<void> Run(std::shared_ptr<Batcher> self, Batch batch) {
    std::vector<Item> items;
    items.reserve(batch.size());
    int64_t timeout_ms = INT64_MAX;
    for (auto& call : batch) {
      items.push_back(std::move(call->item));
      timeout_ms = std::min(timeout_ms, call->timeout_ms);
    }
    Result<std::vector<Reply>> replies = co_await self->send_(std::move(items), timeout_ms);
    --self->in_flight_;
    if (replies.ok() && replies->size() != batch.size()) {
      replies = FailWith(ErrorId::kServerError, "", "a batch returned a wrong number of results");
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      if (replies.ok()) {
        batch[i]->reply.emplace(std::move((*replies)[i]));
      } else {
        batch[i]->reply.emplace(Fail{replies.error()});
      }
      batch[i]->waiter.Resume(true);
    }
    self->Flush();
  }

  Loop& loop_;
  const Send send_;
  const int max_in_flight_;
  std::deque<std::shared_ptr<Pending>> waiting_;
  int in_flight_ = 0;
  bool flush_planned_ = false;
};

}  // namespace tollgate
