// Client side of a stream of calls: all calls of one method from one loop to one replica share a
// stream, which costs a fraction of separate calls (docs/adr/0027). Used by CallAny
// (replica_call.h) with a StreamedMethod; the server side is call_stream_server.h.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/error/error.h"
#include "common/rpc/call.h"
#include "common/rpc/error_detail.h"
#include "common/rpc/error_status.h"
#include "common/rpc/inbox.h"
#include "common/runtime/loop.h"
#include "common/runtime/notify.h"

namespace tollgate::rpc {

// Limit of calls that wait to be written; one more fails.
inline constexpr size_t kMaxUnwrittenCalls = 256;
// Resolution of call timeouts in milliseconds.
inline constexpr int64_t kCallSweepMs = 50;
// If a server does not know the method, the stream is tried again after this time: another version
// may be running at its address by then.
inline constexpr int64_t kUnknownMethodUs = 60'000'000;

// One stream. Its callbacks only put signals into the inbox.
template <typename Call, typename Reply>
class CallStreamConnection : public grpc::ClientBidiReactor<Call, Reply> {
 public:
  using Open = std::function<void(grpc::ClientContext*, grpc::ClientBidiReactor<Call, Reply>*)>;
  struct Signal {
    CallStreamConnection* from = nullptr;
    std::unique_ptr<Reply> reply;               // null: the stream is over
    std::optional<grpc::StatusCode> code = {};  // status of the stream
    std::string text = {};
  };

  CallStreamConnection(const Open& open, std::shared_ptr<Inbox<Signal>> inbox)
      : inbox_(std::move(inbox)) {
    open(&context_, this);
    this->AddHold();  // the loop starts writes outside gRPC's callbacks
    reply_ = std::make_unique<Reply>();
    this->StartRead(reply_.get());
    this->StartCall();
  }

  // Call it on the loop. Takes the call unless it returns an error. kClosing: the stream is ending.
  enum class Sent : uint8_t { kYes, kTooMany, kClosing };
  Sent Send(Call& call) {
    std::unique_lock lock(mutex_);
    if (closing_) return Sent::kClosing;
    if (calls_.size() >= kMaxUnwrittenCalls) return Sent::kTooMany;
    calls_.push_back(std::move(call));
    if (calls_.size() > 1) return Sent::kYes;  // another one is being written
    const Call* next = &calls_.front();
    lock.unlock();
    this->StartWrite(next);
    return Sent::kYes;
  }
  // No Send after this. The server ends the stream when it has answered all calls.
  void Close() {
    std::unique_lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
    const bool writing = !calls_.empty();
    lock.unlock();
    if (!writing) EndWrites();
  }
  // Stops putting signals: the loop may have ended.
  void Detach() { detached_ = true; }
  void Cancel() {
    context_.TryCancel();
    Close();
  }
  void WaitUntilDone() {
    std::unique_lock lock(mutex_);
    done_signal_.wait(lock, [this] { return done_; });
  }

 private:
  void EndWrites() {
    this->StartWritesDone();
    this->RemoveHold();
  }
  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    calls_.pop_front();
    if (!ok) calls_.clear();  // the read ends, too
    const Call* next = calls_.empty() ? nullptr : &calls_.front();
    const bool close = next == nullptr && closing_;
    lock.unlock();
    if (next != nullptr) this->StartWrite(next);
    if (close) EndWrites();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Close();
    auto reply = std::exchange(reply_, std::make_unique<Reply>());
    if (!detached_) inbox_->Put({this, std::move(reply)});
    this->StartRead(reply_.get());
  }
  void OnDone(const grpc::Status& status) override {
    if (!detached_) inbox_->Put({this, nullptr, status.error_code(), status.error_message()});
    std::lock_guard lock(mutex_);
    done_ = true;
    done_signal_.notify_all();
  }

  grpc::ClientContext context_;
  const std::shared_ptr<Inbox<Signal>> inbox_;
  std::unique_ptr<Reply> reply_;
  std::mutex mutex_;
  std::deque<Call> calls_;  // the first one is being written
  std::atomic<bool> detached_{false};
  bool closing_ = false;
  bool done_ = false;
  std::condition_variable done_signal_;
};

// The calls of one method to one replica. Lives on one loop, held by shared_ptr; destroyed there or
// after the loop has stopped.
template <typename Call, typename Reply>
class CallStream {
 public:
  using Connection = CallStreamConnection<Call, Reply>;
  using Signal = typename Connection::Signal;
  using Request = std::decay_t<decltype(std::declval<const Call&>().request())>;
  using Response = std::decay_t<decltype(std::declval<const Reply&>().response())>;
  struct Answer {
    Result<Response> result;
    // The server does not know the method, so the call had no effect.
    bool unknown_method = false;
  };

  CallStream(Loop& loop, typename Connection::Open open)
      : loop_(loop),
        open_(std::move(open)),
        inbox_(std::make_shared<Inbox<Signal>>(
            loop, [this](std::vector<Signal> signals) { Take(std::move(signals)); })) {}
  ~CallStream() {
    *alive_ = false;
    inbox_->Close();
    for (const auto& connection : connections_) {
      connection->Detach();
      connection->Cancel();
    }
    for (const auto& connection : connections_) connection->WaitUntilDone();
  }
  CallStream(const CallStream&) = delete;
  CallStream& operator=(const CallStream&) = delete;

  // False for a while after a server did not know the method.
  bool Usable() const { return SystemClock::Get().MonotonicUs() >= unusable_until_us_; }
  // Whether the server has answered on a stream.
  bool proven() const { return proven_; }

  // kServiceUnavailable: no answer in time; the call may or may not have been applied. cancel: as
  // for Unary.
  static Task<Answer> Ask(std::shared_ptr<CallStream> self, Request request, int64_t timeout_ms,
                          CancelSlot* cancel) {
    Waiter waiter(self->loop_);
    Pending pending{.waiter = waiter,
                    .deadline_us = NowUs() + std::max<int64_t>(timeout_ms, 1) * 1000};
    const uint64_t number = ++self->last_number_;
    struct Guard {
      CallStream& stream;
      uint64_t number;
      CancelSlot* cancel;
      ~Guard() {
        stream.pending_.erase(number);
        if (cancel != nullptr) cancel->Set(nullptr);
      }
    } guard{*self, number, cancel};
    if (self->Send(number, std::move(request), pending)) {
      if (cancel != nullptr) {
        cancel->Set([stream = self.get(), number] {
          stream->End(number, Unavailable("the call was abandoned"));
        });
      }
      co_await waiter.Suspend();
    }
    if (!pending.answer) {
      co_return Answer{FailWith(ErrorId::kServiceUnavailable, "", "the call was cancelled")};
    }
    co_return std::move(*pending.answer);
  }

 private:
  struct Pending {
    Waiter& waiter;
    const int64_t deadline_us;
    Connection* connection = nullptr;
    std::optional<Answer> answer = {};
  };

  static int64_t NowUs() { return SystemClock::Get().MonotonicUs(); }

  bool Send(uint64_t number, Request request, Pending& pending) {
    Call call;
    call.set_call(number);
    *call.mutable_request() = std::move(request);
    auto sent = current_ == nullptr ? Connection::Sent::kClosing : current_->Send(call);
    if (sent == Connection::Sent::kClosing) {
      connections_.push_back(std::make_unique<Connection>(open_, inbox_));
      current_ = connections_.back().get();
      sent = current_->Send(call);
    }
    pending.connection = current_;
    if (sent == Connection::Sent::kTooMany) {
      pending.answer.emplace(Answer{Unavailable("too many calls wait for one replica")});
      return false;
    }
    // kClosing: a new stream ended at once, for example because the server does not know the
    // method. The end is in the inbox, or will be soon, and answers this call.
    pending_.emplace(number, &pending);
    PlanSweep();
    return true;
  }

  // Sets the answer of the call; its coroutine resumes later.
  void End(uint64_t number, Result<Response> result, bool unknown_method = false) {
    const auto found = pending_.find(number);
    if (found == pending_.end()) return;  // it timed out
    Pending& pending = *found->second;
    pending_.erase(found);
    pending.answer.emplace(Answer{std::move(result), unknown_method});
    pending.waiter.Resume(true);
  }

  void Take(std::vector<Signal> signals) {
    for (Signal& signal : signals) {
      if (signal.reply != nullptr) {
        TakeReply(*signal.from, *signal.reply);
      } else {
        Ended(*signal.from, *signal.code, signal.text);
      }
    }
  }
  void TakeReply(Connection& from, Reply& reply) {
    proven_ = true;
    if (reply.call() == 0) {  // the server asks for another stream
      if (current_ == &from) current_ = nullptr;
    } else if (reply.has_error()) {
      End(reply.call(), Fail{FromDetail(reply.error())});
    } else {
      End(reply.call(), std::move(*reply.mutable_response()));
    }
    if (&from != current_) CloseIfIdle(from);
  }
  void Ended(Connection& from, grpc::StatusCode code, const std::string& text) {
    if (current_ == &from) current_ = nullptr;
    const bool unknown = code == grpc::StatusCode::UNIMPLEMENTED;
    if (unknown) unusable_until_us_ = NowUs() + kUnknownMethodUs;
    const Error error = code == grpc::StatusCode::OK || unknown
                            ? Unavailable("the replica ended the stream of calls").error
                            : FromStatus(grpc::Status(code, text));
    for (const uint64_t number : Of(from)) End(number, Fail{error}, unknown);
    from.WaitUntilDone();
    connections_.remove_if([&](const auto& one) { return one.get() == &from; });
  }
  void CloseIfIdle(Connection& connection) {
    if (Of(connection).empty()) connection.Close();
  }
  std::vector<uint64_t> Of(const Connection& connection) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, pending] : pending_) {
      if (pending->connection == &connection) numbers.push_back(number);
    }
    return numbers;
  }

  void PlanSweep() {
    if (sweep_planned_) return;
    sweep_planned_ = true;
    loop_.RunAfter(kCallSweepMs, [this, alive = alive_] {
      if (!*alive) return;
      sweep_planned_ = false;
      const int64_t now_us = NowUs();
      std::vector<uint64_t> late;
      for (const auto& [number, pending] : pending_) {
        if (now_us >= pending->deadline_us) late.push_back(number);
      }
      for (const uint64_t number : late) {
        End(number, Unavailable("the replica did not answer in time"));
      }
      for (const auto& connection : connections_) {
        if (connection.get() != current_) CloseIfIdle(*connection);
      }
      if (!pending_.empty()) PlanSweep();
    });
  }

  Loop& loop_;
  const typename Connection::Open open_;
  const std::shared_ptr<Inbox<Signal>> inbox_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::list<std::unique_ptr<Connection>> connections_;
  Connection* current_ = nullptr;  // element of connections_ that takes new calls
  std::unordered_map<uint64_t, Pending*> pending_;
  uint64_t last_number_ = 0;
  int64_t unusable_until_us_ = 0;
  bool proven_ = false;
  bool sweep_planned_ = false;
};

}  // namespace tollgate::rpc
