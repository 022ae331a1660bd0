#include "common/rpc/call_stream.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/rpc/error_status.h"

namespace tollgate::rpc {

void CallConnection::WaitUntilDone() {
  std::unique_lock lock(mutex_);
  done_signal_.wait(lock, [this] { return done_; });
}

void CallConnection::Put(std::unique_ptr<google::protobuf::MessageLite> reply) {
  if (!detached_) inbox_->Put({this, std::move(reply)});
}

void CallConnection::PutEnd(const grpc::Status& status) {
  if (!detached_) inbox_->Put({this, nullptr, status.error_code(), status.error_message()});
  std::lock_guard lock(mutex_);
  done_ = true;
  done_signal_.notify_all();
}

PendingCalls::Pending::Pending(PendingCalls& calls, int64_t timeout_ms, CancelSlot* cancel)
    : calls(calls),
      number(++calls.last_number_),
      deadline_us(MonotonicNowUs() + std::max<int64_t>(timeout_ms, 1) * 1000),
      cancel(cancel),
      waiter(calls.loop_) {}

PendingCalls::Pending::~Pending() {
  calls.pending_.erase(number);
  if (cancel != nullptr) cancel->Set(nullptr);
}

Error PendingCalls::Pending::Failure() {
  if (error) return std::move(*error);
  return Error{.id = ErrorId::kServiceUnavailable, .internal = "the call was cancelled"};
}

PendingCalls::PendingCalls(Loop& loop)
    : loop_(loop),
      inbox_(std::make_shared<CallConnection::SignalInbox>(
          loop,
          [this](std::vector<CallConnection::Signal> signals) { Take(std::move(signals)); })) {}

PendingCalls::~PendingCalls() {
  *alive_ = false;
  inbox_->Close();
  for (const auto& connection : connections_) {
    connection->Detach();
    connection->Cancel();
  }
  for (const auto& connection : connections_) connection->WaitUntilDone();
}

bool PendingCalls::Usable() const { return MonotonicNowUs() >= unusable_until_us_; }

void PendingCalls::Opened(std::unique_ptr<CallConnection> connection) {
  connections_.push_back(std::move(connection));
  current_ = connections_.back().get();
}

bool PendingCalls::Sent(Pending& pending, CallConnection::Sent sent) {
  pending.connection = current_;
  if (sent == CallConnection::Sent::kTooMany) {
    pending.error = Unavailable("too many calls wait for one replica").error;
    return false;
  }
  // kClosing: a new stream ended at once, for example because the server does not know the method.
  // The end is in the inbox, or will be soon, and answers this call.
  pending_.emplace(pending.number, &pending);
  if (pending.cancel != nullptr) {
    pending.cancel->Set([this, number = pending.number] {
      Fail(number, Unavailable("the call was abandoned").error);
    });
  }
  PlanSweep();
  return true;
}

PendingCalls::Pending* PendingCalls::Remove(uint64_t number) {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return nullptr;  // it timed out
  Pending* const pending = found->second;
  pending_.erase(found);
  return pending;
}

void PendingCalls::Fail(uint64_t number, const Error& error, bool unknown_method) {
  Pending* const pending = Remove(number);
  if (pending == nullptr) return;
  pending->error = error;
  pending->unknown_method = unknown_method;
  pending->waiter.Resume(true);
}

void PendingCalls::Take(std::vector<CallConnection::Signal> signals) {
  for (CallConnection::Signal& signal : signals) {
    if (signal.reply != nullptr) {
      TakeReply(*signal.from, *signal.reply);
    } else {
      Ended(*signal.from, *signal.code, signal.text);
    }
  }
}

void PendingCalls::TakeReply(CallConnection& from, google::protobuf::MessageLite& reply) {
  proven_ = true;
  if (!TakeAnswer(reply) && current_ == &from) current_ = nullptr;
  if (&from != current_) CloseIfIdle(from);
}

void PendingCalls::Ended(CallConnection& from, grpc::StatusCode code, const std::string& text) {
  if (current_ == &from) current_ = nullptr;
  const bool unknown = code == grpc::StatusCode::UNIMPLEMENTED;
  if (unknown) unusable_until_us_ = MonotonicNowUs() + kUnknownMethodUs;
  const Error error = code == grpc::StatusCode::OK || unknown
                          ? Unavailable("the replica ended the stream of calls").error
                          : FromStatus(grpc::Status(code, text));
  for (const uint64_t number : Of(from)) Fail(number, error, unknown);
  from.WaitUntilDone();
  connections_.remove_if([&](const auto& one) { return one.get() == &from; });
}

void PendingCalls::CloseIfIdle(CallConnection& connection) {
  if (Of(connection).empty()) connection.Close();
}

std::vector<uint64_t> PendingCalls::Of(const CallConnection& connection) const {
  std::vector<uint64_t> numbers;
  for (const auto& [number, pending] : pending_) {
    if (pending->connection == &connection) numbers.push_back(number);
  }
  return numbers;
}

void PendingCalls::PlanSweep() {
  if (sweep_planned_) return;
  sweep_planned_ = true;
  loop_.RunAfter(kCallSweepMs, [this, alive = alive_] {
    if (*alive) Sweep();
  });
}

void PendingCalls::Sweep() {
  sweep_planned_ = false;
  const int64_t now_us = MonotonicNowUs();
  std::vector<uint64_t> late;
  for (const auto& [number, pending] : pending_) {
    if (now_us >= pending->deadline_us) late.push_back(number);
  }
  for (const uint64_t number : late) {
    Fail(number, Unavailable("the replica did not answer in time").error);
  }
  for (const auto& connection : connections_) {
    if (connection.get() != current_) CloseIfIdle(*connection);
  }
  if (!pending_.empty()) PlanSweep();
}

}  // namespace tollgate::rpc
