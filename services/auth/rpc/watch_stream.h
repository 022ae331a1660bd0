// The stream of one watcher. The change feed's thread queues messages, which are written one at a
// time, as gRPC requires. rpc::PushHub fetches a stream's first messages on a gRPC thread; here
// they come from the database, which would block that thread.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

// Owns itself until gRPC calls OnDone. Thread-safe.
class WatchStream : public grpc::ServerWriteReactor<v1::WatchKeysResponse> {
 public:
  using Message = v1::WatchKeysResponse;
  using MessagePtr = std::shared_ptr<const Message>;

  static std::shared_ptr<WatchStream> Make() {
    std::shared_ptr<WatchStream> stream(new WatchStream());
    stream->self_ = stream;
    return stream;
  }
  // on_done runs once, on a gRPC thread, after the watcher disconnected or the stream was closed.
  // It must not call Push. Set it before the handler returns the stream.
  void set_on_done(std::function<void()> on_done) { on_done_ = std::move(on_done); }

  // Queues the message. Disconnects a watcher whose queue is full; it reconnects with the last
  // version that it has applied.
  void Push(MessagePtr message) {
    std::unique_lock lock(mutex_);
    if (closing_) return;
    if (queue_.size() >= kMaxQueued) {
      return Finish(lock,
                    grpc::Status(grpc::StatusCode::UNAVAILABLE, "the watcher reads too slowly"));
    }
    queue_.push_back(std::move(message));
    WriteNext(lock);
  }
  // Ends the stream. Queued messages are dropped.
  void Close(grpc::Status status) {
    std::unique_lock lock(mutex_);
    Finish(lock, std::move(status));
  }

  void OnWriteDone(bool ok) override {
    std::unique_lock lock(mutex_);
    writing_.reset();
    if (!ok && !closing_) {
      closing_ = true;
      status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the watcher disconnected");
    }
    if (closing_) return FinishNow(lock);
    WriteNext(lock);
  }
  void OnCancel() override {
    Close(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher disconnected"));
  }
  void OnDone() override {
    const auto on_done = std::move(on_done_);
    if (on_done) on_done();
    // Last statement: this may destroy the object.
    const auto self = std::move(self_);
  }

 private:
  static constexpr size_t kMaxQueued = 1024;
  WatchStream() = default;

  // Only the thread that sets writing_ calls gRPC, until OnWriteDone. So gRPC is called without the
  // lock, and Finish waits for a running write.
  void WriteNext(std::unique_lock<std::mutex>& lock) {
    if (writing_ || queue_.empty()) return;
    writing_ = std::move(queue_.front());
    queue_.pop_front();
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
    queue_.clear();
    const grpc::Status status = status_;
    lock.unlock();
    grpc::ServerWriteReactor<Message>::Finish(status);
  }

  std::mutex mutex_;
  std::deque<MessagePtr> queue_;
  MessagePtr writing_;
  bool closing_ = false;
  grpc::Status status_;
  std::function<void()> on_done_;
  std::shared_ptr<WatchStream> self_;
};

}  // namespace tollgate::auth
