// Client side of a stream of calls: all calls of one method from one loop to one replica share a
// stream, which costs a fraction of separate calls (docs/adr/0027). Used by ReplicaCaller
// (replica_caller.h) for a StreamedMethod; the server side is call_stream_server.h.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/error/error.h"
#include "common/rpc/call.h"
#include "common/rpc/error_detail.h"
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

// The part of a stream that does not depend on its method.
class CallConnection {
 public:
  struct Signal {
    CallConnection* from = nullptr;
    std::unique_ptr<google::protobuf::MessageLite> reply;  // null: the stream is over
    std::optional<grpc::StatusCode> code = {};             // status of the stream
    std::string text = {};
  };
  using SignalInbox = Inbox<Signal>;
  // kClosing: the stream is ending.
  enum class Sent : uint8_t { kYes, kTooMany, kClosing };

  explicit CallConnection(std::shared_ptr<SignalInbox> inbox) : inbox_(std::move(inbox)) {}
  virtual ~CallConnection() = default;
  // No call is sent after this. The server ends the stream when it has answered all calls.
  virtual void Close() = 0;
  void Cancel() {
    context_.TryCancel();
    Close();
  }
  // Stops putting signals: the loop may have ended.
  void Detach() { detached_ = true; }
  void WaitUntilDone();

 protected:
  void Put(std::unique_ptr<google::protobuf::MessageLite> reply);
  void PutEnd(const grpc::Status& status);

  grpc::ClientContext context_;
  std::mutex mutex_;
  bool closing_ = false;

 private:
  const std::shared_ptr<SignalInbox> inbox_;
  std::atomic<bool> detached_{false};
  bool done_ = false;
  std::condition_variable done_signal_;
};

// One stream. Its callbacks only put signals into the inbox.
template <typename Call, typename Reply>
class CallStreamConnection final : public CallConnection,
                                   public grpc::ClientBidiReactor<Call, Reply> {
 public:
  using Open = std::function<void(grpc::ClientContext*, grpc::ClientBidiReactor<Call, Reply>*)>;

  CallStreamConnection(const Open& open, std::shared_ptr<SignalInbox> inbox)
      : CallConnection(std::move(inbox)) {
    open(&context_, this);
    this->AddHold();  // the loop starts writes outside gRPC's callbacks
    reply_ = std::make_unique<Reply>();
    this->StartRead(reply_.get());
    this->StartCall();
  }

  // Call it on the loop. Takes the call if it returns kYes.
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
  void Close() override {
    std::unique_lock lock(mutex_);
    if (std::exchange(closing_, true)) return;
    const bool writing = !calls_.empty();
    lock.unlock();
    if (!writing) EndWrites();
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
    Put(std::exchange(reply_, std::make_unique<Reply>()));
    this->StartRead(reply_.get());
  }
  void OnDone(const grpc::Status& status) override { PutEnd(status); }

  std::unique_ptr<Reply> reply_;
  std::deque<Call> calls_;  // the first one is being written
};

// The part of a CallStream that does not depend on its method.
class PendingCalls {
 public:
  // False for a while after a server did not know the method.
  bool Usable() const;
  // Whether the server has answered on a stream.
  bool proven() const { return proven_; }
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

 protected:
  // Lives in the frame of the coroutine that waits.
  struct Pending {
    // cancel: may be null.
    Pending(PendingCalls& calls, int64_t timeout_ms, CancelSlot* cancel);
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    // Why there is no answer.
    Error Failure();

    PendingCalls& calls;
    const uint64_t number;
    const int64_t deadline_us;
    CancelSlot* const cancel;
    CallConnection* connection = nullptr;
    std::optional<Error> error = {};
    bool unknown_method = false;
    Waiter waiter;
  };

  explicit PendingCalls(Loop& loop);
  virtual ~PendingCalls();
  // Passes an answer to its call, if that still waits (Remove). Returns false if the server asks
  // for another stream instead.
  virtual bool TakeAnswer(google::protobuf::MessageLite& reply) = 0;

  void Opened(std::unique_ptr<CallConnection> connection);
  // Takes what CallConnection::Send returned. Returns whether the call waits for its answer.
  bool Sent(Pending& pending, CallConnection::Sent sent);
  // Returns null if the call does not wait any more.
  Pending* Remove(uint64_t number);
  // Ends the call; its coroutine resumes later.
  void Fail(uint64_t number, const Error& error, bool unknown_method = false);
  CallConnection* current() const { return current_; }
  const std::shared_ptr<CallConnection::SignalInbox>& inbox() const { return inbox_; }

 private:
  void Take(std::vector<CallConnection::Signal> signals);
  void TakeReply(CallConnection& from, google::protobuf::MessageLite& reply);
  void Ended(CallConnection& from, grpc::StatusCode code, const std::string& text);
  void CloseIfIdle(CallConnection& connection);
  std::vector<uint64_t> Of(const CallConnection& connection) const;
  void PlanSweep();
  void Sweep();

  Loop& loop_;
  const std::shared_ptr<CallConnection::SignalInbox> inbox_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::list<std::unique_ptr<CallConnection>> connections_;
  CallConnection* current_ = nullptr;  // element of connections_ that takes new calls
  std::unordered_map<uint64_t, Pending*> pending_;
  uint64_t last_number_ = 0;
  int64_t unusable_until_us_ = 0;
  bool proven_ = false;
  bool sweep_planned_ = false;
};

// The calls of one method to one replica. Lives on one loop, held by shared_ptr; destroyed there or
// after the loop has stopped.
template <typename Call, typename Reply>
class CallStream final : public PendingCalls {
 public:
  using Connection = CallStreamConnection<Call, Reply>;
  using Reactor = grpc::ClientBidiReactor<Call, Reply>;
  using Request = std::decay_t<decltype(std::declval<const Call&>().request())>;
  using Response = std::decay_t<decltype(std::declval<const Reply&>().response())>;
  struct Answer {
    Result<Response> result;
    // The server does not know the method, so the call had no effect.
    bool unknown_method = false;
  };

  CallStream(Loop& loop, typename Connection::Open open)
      : PendingCalls(loop), open_(std::move(open)) {}

  // kServiceUnavailable: no answer in time; the call may or may not have been applied. cancel: as
  // for Unary.
  static Task<Answer> Ask(std::shared_ptr<CallStream> self, Request request, int64_t timeout_ms,
                          CancelSlot* cancel) {
    Asked asked(*self, timeout_ms, cancel);
    if (self->Send(asked, std::move(request))) co_await asked.waiter.Suspend();
    if (asked.response) co_return Answer{std::move(*asked.response)};
    co_return Answer{tollgate::Fail{asked.Failure()}, asked.unknown_method};
  }

 private:
  struct Asked : Pending {
    using Pending::Pending;
    std::optional<Response> response = {};
  };

  bool Send(Asked& asked, Request request) {
    Call call;
    call.set_call(asked.number);
    *call.mutable_request() = std::move(request);
    auto* connection = static_cast<Connection*>(current());
    auto sent = connection == nullptr ? CallConnection::Sent::kClosing : connection->Send(call);
    if (sent == CallConnection::Sent::kClosing) {
      auto opened = std::make_unique<Connection>(open_, inbox());
      connection = opened.get();
      Opened(std::move(opened));
      sent = connection->Send(call);
    }
    return Sent(asked, sent);
  }
  bool TakeAnswer(google::protobuf::MessageLite& message) override {
    auto& reply = static_cast<Reply&>(message);
    if (reply.call() == 0) return false;
    if (reply.has_error()) {
      Fail(reply.call(), FromDetail(reply.error()));
    } else if (auto* asked = static_cast<Asked*>(Remove(reply.call()))) {
      asked->response.emplace(std::move(*reply.mutable_response()));
      asked->waiter.Resume(true);
    }
    return true;
  }

  const typename Connection::Open open_;
};

}  // namespace tollgate::rpc
