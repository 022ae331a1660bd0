// Batches the calls of one loop to one service. A call is sent at the end of the loop's turn. While
// the maximum number of batches is in flight, further calls wait and form the next batch. An
// unresponsive service costs at most kMaxWaiting items, and each call its own timeout.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
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
  // More than one, so that a slow batch does not block all calls. Few, so that batches grow under
  // load.
  static constexpr int kMaxInFlight = 2;
  // A batch that takes longer is stuck, for example because one of its items waits for a hung
  // database server. It no longer counts as in flight, up to kMaxStuck batches, so that other calls
  // proceed.
  static constexpr int64_t kStuckUs = 100'000;
  static constexpr size_t kMaxStuck = 64;
  // Within the process a message is cheap, and the service does its own batching.
  static constexpr int kMaxInFlightDirect = 64;
  // Calls beyond this number are refused at once.
  static constexpr size_t kMaxWaiting = 16'384;

  // Direct call within the process, without coroutines: done is called once, on any thread, in
  // bounded time and possibly before the call returns.
  using SendDirect = std::function<void(std::vector<Item> items,
                                        std::function<void(Result<std::vector<Reply>>)> done)>;
  enum class When : uint8_t {
    kEndOfTurn,  // for a service that hands the batch to another thread
    kAtOnce,     // for one that answers within the call
  };

  Batcher(Loop& loop, Send send, const Clock& clock = SystemClock::Get())
      : loop_(loop), clock_(clock), send_(std::move(send)), max_in_flight_(kMaxInFlight) {}
  Batcher(Loop& loop, SendDirect send, When when)
      : loop_(loop),
        clock_(SystemClock::Get()),
        send_direct_(std::move(send)),
        when_(when),
        max_in_flight_(kMaxInFlightDirect) {}

  // Resolution of timeouts in milliseconds.
  static constexpr int64_t kSweepMs = 20;

  // Returns the reply to one item. The timeout includes the wait for a batch; a call that times out
  // while it waits is not sent. A batch gets the remaining time of its last item.
  Task<Result<Reply>> Call(Item item, int64_t timeout_ms) {
    if (waiting_.size() >= kMaxWaiting) {
      co_return FailWith(ErrorId::kServiceUnavailable, "",
                         "too many calls are waiting for one service");
    }
    auto self = this->shared_from_this();
    auto call = std::make_shared<Pending>(loop_, std::move(item), NowUs() + timeout_ms * 1000);
    waiting_.push_back(call);
    if (when_ == When::kAtOnce) Flush();
    if (!call->reply) {
      PlanSweep();
      PlanFlush();
      co_await call->waiter.Suspend();
    }
    if (call->reply) co_return std::move(*call->reply);
    co_return FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled");
  }

 private:
  struct Pending {
    Pending(Loop& loop, Item item, int64_t deadline_us)
        : item(std::move(item)), deadline_us(deadline_us), waiter(loop) {}
    Item item;
    const int64_t deadline_us;
    std::optional<Result<Reply>> reply;
    Waiter waiter;
  };
  struct Batch {
    std::vector<std::shared_ptr<Pending>> calls;
    int64_t since_us = 0;
  };

  int64_t NowUs() const { return clock_.MonotonicUs(); }
  static void Finish(Pending& call, Result<Reply> reply, void (Waiter::*resume)(bool)) {
    if (call.reply) return;  // timed out
    call.reply.emplace(std::move(reply));
    (call.waiter.*resume)(true);
  }
  // Returns true if the call's time is over; it then fails.
  static bool Expire(Pending& call, int64_t now_us) {
    if (now_us < call.deadline_us) return false;
    Finish(call, FailWith(ErrorId::kServiceUnavailable, "", "the service did not answer in time"),
           &Waiter::Resume);
    return true;
  }

  void PlanFlush() {
    if (flush_planned_ || waiting_.empty()) return;
    flush_planned_ = true;
    loop_.AtEndOfTurn([self = this->shared_from_this()] {
      self->flush_planned_ = false;
      self->Flush();
    });
  }
  void PlanSweep() {
    if (sweep_planned_) return;
    sweep_planned_ = true;
    loop_.RunAfter(kSweepMs, [weak = this->weak_from_this()] {
      if (auto self = weak.lock()) self->Sweep();
    });
  }
  void Sweep() {
    sweep_planned_ = false;
    const int64_t now_us = NowUs();
    std::erase_if(waiting_, [&](const auto& call) { return Expire(*call, now_us); });
    for (const auto& batch : running_) {
      for (const auto& call : batch->calls) Expire(*call, now_us);
    }
    Flush();
    if (!waiting_.empty() || !running_.empty()) PlanSweep();
  }

  bool MaySend() const {
    if (static_cast<int>(running_.size()) < max_in_flight_) return true;
    const int64_t stuck_us = NowUs() - kStuckUs;
    const auto stuck = std::ranges::count_if(
        running_, [&](const auto& batch) { return batch->since_us <= stuck_us; });
    return running_.size() < kMaxStuck &&
           static_cast<int64_t>(running_.size()) - stuck < max_in_flight_;
  }

  void Flush() {
    while (!waiting_.empty() && MaySend()) {
      size_t count = std::min(waiting_.size(), kMaxItems);
      const auto end = waiting_.begin() + static_cast<ptrdiff_t>(count);
      auto batch = std::make_shared<Batch>();
      batch->calls.assign(waiting_.begin(), end);
      batch->since_us = NowUs();
      waiting_.erase(waiting_.begin(), end);
      running_.push_back(batch);
      if (send_direct_) {
        RunDirect(std::move(batch));
      } else {
        loop_.Spawn(Run(this->shared_from_this(), std::move(batch)));
      }
    }
  }

  static std::vector<Item> TakeItems(Batch& batch) {
    std::vector<Item> items;
    items.reserve(batch.calls.size());
    for (auto& call : batch.calls) items.push_back(std::move(call->item));
    return items;
  }

  void RunDirect(std::shared_ptr<Batch> batch) {
    struct Sent {
      Sent(std::shared_ptr<Batcher> self, std::shared_ptr<Batch> batch)
          : self(std::move(self)), batch(std::move(batch)), outside(this->self->loop_) {}
      const std::shared_ptr<Batcher> self;
      const std::shared_ptr<Batch> batch;
      OutsideWork outside;
      bool calling = true;  // on the loop only
    };
    auto sent = std::make_shared<Sent>(this->shared_from_this(), batch);
    send_direct_(TakeItems(*batch), [sent, &loop = loop_](Result<std::vector<Reply>> replies) {
      if (Loop::Current() == &loop && sent->calling) {
        return sent->self->Complete(sent->batch, std::move(replies), &Waiter::Resume);
      }
      loop.Post([sent, replies = std::move(replies)]() mutable {
        sent->self->Complete(sent->batch, std::move(replies), &Waiter::ResumeNow);
        sent->self->Flush();
      });
    });
    sent->calling = false;
  }

  static Task<void> Run(std::shared_ptr<Batcher> self, std::shared_ptr<Batch> batch) {
    int64_t deadline_us = 0;
    for (auto& call : batch->calls) deadline_us = std::max(deadline_us, call->deadline_us);
    const int64_t left_ms = std::max<int64_t>((deadline_us - self->NowUs()) / 1000, 1);
    Result<std::vector<Reply>> replies = co_await self->send_(TakeItems(*batch), left_ms);
    self->Complete(batch, std::move(replies), &Waiter::Resume);
    self->Flush();
  }

  void Complete(const std::shared_ptr<Batch>& batch, Result<std::vector<Reply>> replies,
                void (Waiter::*resume)(bool)) {
    std::erase(running_, batch);
    if (replies.ok() && replies->size() != batch->calls.size()) {
      replies = FailWith(ErrorId::kServerError, "", "a batch returned a wrong number of results");
    }
    for (size_t i = 0; i < batch->calls.size(); ++i) {
      Pending& call = *batch->calls[i];
      if (replies.ok()) {
        Finish(call, std::move((*replies)[i]), resume);
      } else {
        Finish(call, Fail{replies.error()}, resume);
      }
    }
  }

  Loop& loop_;
  const Clock& clock_;
  const Send send_;
  const SendDirect send_direct_;
  const When when_ = When::kEndOfTurn;
  const int max_in_flight_;
  std::deque<std::shared_ptr<Pending>> waiting_;
  std::vector<std::shared_ptr<Batch>> running_;
  bool flush_planned_ = false;
  bool sweep_planned_ = false;
};

}  // namespace tollgate
