// Batches the calls of one loop to one service. A call is sent at the end of the loop's turn. While
// the maximum number of batches is in flight, further calls wait and form the next batch. An
// unresponsive service costs at most kMaxWaiting items, and each call its own timeout.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/rpc/replica_caller.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"
#include "common/runtime/task.h"

namespace tollgate {

// The part of a Batcher that does not depend on its method.
class BatchQueue : public std::enable_shared_from_this<BatchQueue> {
 public:
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
  // Resolution of timeouts in milliseconds.
  static constexpr int64_t kSweepMs = 20;

  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

 protected:
  struct Pending {
    Pending(Loop& loop, int64_t deadline_us) : deadline_us(deadline_us), waiter(loop) {}
    const int64_t deadline_us;
    bool done = false;
    std::optional<Error> error;
    Waiter waiter;
  };
  struct Batch {
    std::vector<std::shared_ptr<Pending>> calls;
    int64_t since_us = 0;
  };
  using BatchPtr = std::shared_ptr<Batch>;
  using Resume = void (Waiter::*)(bool);

  // at_once: send each call within its Enqueue, for a service that answers within the call.
  BatchQueue(Loop& loop, const Clock& clock, bool direct, bool at_once)
      : loop_(loop),
        clock_(clock),
        at_once_(at_once),
        max_in_flight_(direct ? kMaxInFlightDirect : kMaxInFlight) {}
  virtual ~BatchQueue() = default;
  // Sends a batch and calls End, then Finish or Fail for each of its calls.
  virtual void Send(BatchPtr batch) = 0;

  // Returns false if the call's waiter must be suspended until the call is done.
  bool Enqueue(std::shared_ptr<Pending> call);
  // How the call failed; null: it is answered.
  static std::optional<Error> FailureOf(Pending& call);
  void Flush();
  void End(const BatchPtr& batch) { std::erase(running_, batch); }
  static void Finish(Pending& call, Resume resume);
  static void FailAll(Batch& batch, const Error& error, Resume resume);
  int64_t DeadlineIn(int64_t timeout_ms) const { return NowUs() + timeout_ms * 1000; }
  // The remaining time of the batch's last call.
  int64_t LeftMs(const Batch& batch) const;

  Loop& loop_;

 private:
  int64_t NowUs() const { return clock_.MonotonicUs(); }
  static bool Expire(Pending& call, int64_t now_us);
  void PlanFlush();
  void PlanSweep();
  void Sweep();
  bool MaySend() const;

  const Clock& clock_;
  const bool at_once_;
  const int max_in_flight_;
  std::deque<std::shared_ptr<Pending>> waiting_;
  std::vector<BatchPtr> running_;
  bool flush_planned_ = false;
  bool sweep_planned_ = false;
};

// Added to a method whose calls are batched. A response has one result per item, in the same order,
// or none at all.
template <typename ItemType, typename ReplyType>
struct BatchedMethod {
  using Item = ItemType;
  using Reply = ReplyType;
  // The service of this process answers within the call.
  static constexpr bool kAnsweredAtOnce = false;
  static auto& Items(auto& request) { return *request.mutable_items(); }
  static auto& Results(auto& response)
    requires requires { response.mutable_results(); }
  {
    return *response.mutable_results();
  }
  static void OnRequest(auto&) {}
  static void OnResponse(const auto&) {}
};

// Lives on one loop, held by shared_ptr: batches in flight keep it alive. Route: where the batches
// go, a ReplicaCaller or a type with its Call and direct.
template <typename Method, typename Route = rpc::ReplicaCaller<Method>>
class Batcher final : public BatchQueue {
 public:
  using Item = typename Method::Item;
  using Reply = typename Method::Reply;

  Batcher(Loop& loop, Route route, const Clock& clock = SystemClock::Get())
      : BatchQueue(loop, clock, route.direct() != nullptr,
                   route.direct() != nullptr && Method::kAnsweredAtOnce),
        route_(std::move(route)) {}

  // Returns the reply to one item. The timeout includes the wait for a batch; a call that times out
  // while it waits is not sent. A batch gets the remaining time of its last item.
  Task<Result<Reply>> Call(Item item, int64_t timeout_ms) {
    const auto self = shared_from_this();
    const auto call = std::make_shared<Asked>(loop_, DeadlineIn(timeout_ms), std::move(item));
    if (!Enqueue(call)) co_await call->waiter.Suspend();
    if (auto failure = FailureOf(*call)) co_return Fail{std::move(*failure)};
    co_return std::move(call->reply);
  }

 private:
  using Request = typename Method::Request;
  using Response = typename Method::Response;
  struct Asked : Pending {
    Asked(Loop& loop, int64_t deadline_us, Item item)
        : Pending(loop, deadline_us), item(std::move(item)) {}
    Item item;
    Reply reply;
  };

  void Send(BatchPtr batch) override {
    auto self = std::static_pointer_cast<Batcher>(shared_from_this());
    if (const auto* direct = route_.direct()) {
      SendDirect(*direct, std::move(self), std::move(batch));
    } else {
      loop_.Spawn(Run(std::move(self), std::move(batch)));
    }
  }

  static Task<void> Run(std::shared_ptr<Batcher> self, BatchPtr batch) {
    const int64_t left_ms = self->LeftMs(*batch);
    Result<Response> response = co_await self->route_.Call(Join(*batch), left_ms);
    self->Complete(batch, std::move(response), &Waiter::Resume);
    self->Flush();
  }

  // Without coroutines. The response arrives on any thread, possibly before the call returns.
  static void SendDirect(const rpc::DirectCall<Request, Response>& direct,
                         std::shared_ptr<Batcher> self, BatchPtr batch) {
    struct Sent {
      Sent(std::shared_ptr<Batcher> self, BatchPtr batch)
          : self(std::move(self)), batch(std::move(batch)), outside(this->self->loop_) {}
      const std::shared_ptr<Batcher> self;
      const BatchPtr batch;
      OutsideWork outside;
      bool calling = true;  // on the loop only
    };
    const auto sent = std::make_shared<Sent>(std::move(self), std::move(batch));
    direct(Join(*sent->batch), [sent, &loop = sent->self->loop_](Result<Response> response) {
      if (Loop::Current() == &loop && sent->calling) {
        return sent->self->Complete(sent->batch, std::move(response), &Waiter::Resume);
      }
      loop.Post([sent, response = std::move(response)]() mutable {
        sent->self->Complete(sent->batch, std::move(response), &Waiter::ResumeNow);
        sent->self->Flush();
      });
    });
    sent->calling = false;
  }

  static Request Join(const Batch& batch) {
    Request request;
    auto& items = Method::Items(request);
    items.Reserve(static_cast<int>(batch.calls.size()));
    for (const auto& call : batch.calls) *items.Add() = std::move(static_cast<Asked&>(*call).item);
    Method::OnRequest(request);
    return request;
  }

  void Complete(const BatchPtr& batch, Result<Response> response, Resume resume) {
    constexpr bool kHasResults = requires(Response& of) { Method::Results(of); };
    End(batch);
    if (!response.ok()) return FailAll(*batch, response.error(), resume);
    Method::OnResponse(*response);
    const auto count = static_cast<int>(batch->calls.size());
    if constexpr (kHasResults) {
      if (Method::Results(*response).size() != count) {
        return FailAll(*batch, Internal("a batch returned a wrong number of results").error,
                       resume);
      }
    }
    for (int i = 0; i < count; ++i) {
      auto& call = static_cast<Asked&>(*batch->calls[static_cast<size_t>(i)]);
      if (call.done) continue;  // timed out
      if constexpr (kHasResults) call.reply = std::move(*Method::Results(*response).Mutable(i));
      Finish(call, resume);
    }
  }

  const Route route_;
};

}  // namespace tollgate
