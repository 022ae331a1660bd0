#include "services/catalog/rpc/catalog_publisher.h"

#include <utility>
#include <vector>

namespace tollgate::catalog {

// No pings: an unchanged catalog has nothing to say, and a broken connection is gRPC's to find. A
// watcher that is several catalogs behind begins anew.
CatalogPublisher::CatalogPublisher(Loop& loop) : hub_(loop, {.ping_ms = 0, .max_queued = 16}) {}

void CatalogPublisher::Publish(const v1::Snapshot& snapshot) {
  v1::WatchCatalogResponse message;
  *message.mutable_snapshot() = snapshot;
  {
    std::lock_guard lock(mutex_);
    current_ = std::make_shared<const v1::WatchCatalogResponse>(message);
  }
  // A watcher that comes in between gets it twice, which its version shows.
  hub_.Publish(std::move(message));
}

std::shared_ptr<const v1::WatchCatalogResponse> CatalogPublisher::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

grpc::ServerWriteReactor<v1::WatchCatalogResponse>* CatalogPublisher::Watch() {
  return hub_.Open([this] {
    std::vector<v1::WatchCatalogResponse> first;
    if (const auto newest = current()) first.push_back(*newest);
    return first;
  });
}

}  // namespace tollgate::catalog
