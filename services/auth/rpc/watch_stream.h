// One watcher's stream: the change feed's thread pushes messages, gRPC takes them one at a time.
// (rpc::PushHub reads the first messages on gRPC's thread; here they come from the database.)
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

// Keeps itself alive until gRPC has finished with it. Thread-safe.
class WatchStream : public grpc::ServerWriteReactor<v1::WatchKeysResponse> {
 public:
  using Message = v1::WatchKeysResponse;
  using MessagePtr = std::shared_ptr<const Message>;

  // on_done runs once, on a gRPC thread, when the watcher has gone or the stream was closed: the
  // place to unsubscribe. It must not push.
  static std::shared_ptr<WatchStream> Make() {
    std::shared_ptr<WatchStream> stream(new WatchStream());
    stream->self_ = stream;
    return stream;
  }
  // Before the stream is handed to gRPC.
  void set_on_done(std::function<void()> on_done) { on_done_ = std::move(on_done); }

  // Sends the message after those that wait. A watcher that lets too many wait is cut off: it can
  // come back and say what it has seen.
  void Push(MessagePtr message) {
    std::unique_lock lock(mutex_);
    if (closing_) return;
    if (waiting_.size() >= kMaxWaiting) {
      return Finish(lock, grpc::Status(grpc::StatusCode::UNAVAILABLE, "the watcher is too slow"));
    }
    waiting_.push_back(std::move(message));
    WriteNext(lock);
  }
  // Ends the stream; what waits is not sent.
  void Close(grpc::Status status) {
    std::unique_lock lock(mutex_);
    Finish(lock, std::move(status));
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    writing_.reset();
    if (!ok && !closing_) {
      closing_ = true;
      status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone");
    }
    if (closing_) return FinishNow(lock);
    WriteNext(lock);
  }
  void OnCancel() override {
    Close(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
  }
  void OnDone() override {
    const auto on_done = std::move(on_done_);
    if (on_done) on_done();
    // Last: this may be the end of this object.
    const auto self = std::move(self_);
  }

 private:
  static constexpr size_t kMaxWaiting = 1024;
  WatchStream() = default;

  // Whoever sets writing_ starts the write, and nobody else calls gRPC until it is done: so gRPC is
  // called without the lock, and a finish waits for the write.
  void WriteNext(std::unique_lock<std::mutex>& lock) {
    if (writing_ || waiting_.empty()) return;
    writing_ = std::move(waiting_.front());
    waiting_.pop_front();
    const Message* message = writing_.get();
    lock.unlock();
    StartWrite(message);
  }
  void Finish(std::unique_lock<std::mutex>& lock, grpc::Status status) {
    if (closing_) return;
    closing_ = true;
    status_ = std::move(status);
    if (!writing_) FinishNow(lock);
  }
  void FinishNow(std::unique_lock<std::mutex>& lock) {
    waiting_.clear();
    const grpc::Status status = status_;
    lock.unlock();
    grpc::ServerWriteReactor<Message>::Finish(status);
  }

  std::mutex mutex_;
  std::deque<MessagePtr> waiting_;
  MessagePtr writing_;
  bool closing_ = false;
  grpc::Status status_;
  std::function<void()> on_done_;
  std::shared_ptr<WatchStream> self_;
};

}  // namespace tollgate::auth
