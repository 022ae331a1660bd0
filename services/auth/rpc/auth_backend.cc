#include "services/auth/rpc/auth_backend.h"

namespace tollgate::auth {
namespace {

constexpr size_t kMaxQueuedCalls = 4096;

grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "auth is stopping"}; }

}  // namespace

AuthBackend::AuthBackend(std::unique_ptr<AuthStore> store, int threads, const Clock& clock)
    : store_(std::move(store)),
      workers_(threads, kMaxQueuedCalls, "auth-sql"),
      feed_(*store_, clock) {}

std::shared_ptr<WatchStream> AuthBackend::Watch(const v1::WatchKeysRequest& request) {
  const auto stream = WatchStream::Make();
  std::unique_lock lock(mutex_);
  if (closed_) {
    stream->Close(Stopping());
    return stream;
  }
  streams_.push_back(stream);
  lock.unlock();
  const uint64_t watcher = feed_.Subscribe(
      request, [stream](const WatchStream::MessagePtr& message) { stream->Push(message); });
  // Not too late: gRPC ends a stream only after the handler has returned it.
  stream->set_on_done([self = shared_from_this(), watcher, raw = stream.get()] {
    self->feed_.Unsubscribe(watcher);
    std::lock_guard lock(self->mutex_);
    self->streams_.remove_if([raw](const auto& entry) { return entry.get() == raw; });
  });
  return stream;
}

void AuthBackend::CloseStreams() {
  std::list<std::shared_ptr<WatchStream>> streams;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->Close(Stopping());
}

void AuthBackend::Stop() {
  CloseStreams();
  workers_.Stop();
  feed_.Stop();
}

}  // namespace tollgate::auth
