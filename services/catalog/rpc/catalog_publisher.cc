#include "services/catalog/rpc/catalog_publisher.h"

#include <utility>
#include <vector>

namespace tollgate::catalog {

// No pings: watchers keep the last snapshot anyway, and gRPC detects broken connections. A watcher
// with a full queue is disconnected and starts with the latest snapshot.
CatalogPublisher::CatalogPublisher(Loop& loop) : hub_(loop, {.ping_ms = 0, .max_queued = 16}) {}

void CatalogPublisher::Publish(const v1::Snapshot& snapshot) {
  v1::WatchCatalogResponse message;
  *message.mutable_snapshot() = snapshot;
  {
    std::lock_guard lock(mutex_);
    current_ = std::make_shared<const v1::WatchCatalogResponse>(message);
  }
  // A watcher that connects here gets the same version twice, which is harmless.
  hub_.Publish(std::move(message));
}

std::shared_ptr<const v1::WatchCatalogResponse> CatalogPublisher::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

grpc::ServerWriteReactor<v1::WatchCatalogResponse>* CatalogPublisher::Watch() {
  return hub_.Open([this] {
    std::vector<v1::WatchCatalogResponse> first;
    if (const auto latest = current()) first.push_back(*latest);
    return first;
  });
}

}  // namespace tollgate::catalog
