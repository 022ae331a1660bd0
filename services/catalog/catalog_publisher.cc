#include "services/catalog/catalog_publisher.h"

#include <utility>

namespace tollgate::catalog {

void CatalogPublisher::Publish(const v1::Snapshot& snapshot) {
  auto message = std::make_shared<v1::WatchCatalogResponse>();
  *message->mutable_snapshot() = snapshot;
  std::lock_guard lock(mutex_);
  current_ = std::move(message);
  for (const auto& stream : streams_) stream->PushLatest(current_);
}

CatalogPublisher::Stream::MessagePtr CatalogPublisher::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

std::shared_ptr<CatalogPublisher::Stream> CatalogPublisher::Watch() {
  const auto stream = Stream::Make();
  stream->set_on_done([this, raw = stream.get()] {
    std::lock_guard lock(mutex_);
    streams_.remove_if([raw](const auto& entry) { return entry.get() == raw; });
  });
  std::lock_guard lock(mutex_);
  if (closed_) {
    stream->Close(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the catalog is stopping"));
    return stream;
  }
  streams_.push_back(stream);
  if (current_) stream->PushLatest(current_);
  return stream;
}

void CatalogPublisher::Close() {
  std::list<std::shared_ptr<Stream>> streams;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) {
    stream->Close(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the catalog is stopping"));
  }
}

int CatalogPublisher::watchers() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(streams_.size());
}

}  // namespace tollgate::catalog
