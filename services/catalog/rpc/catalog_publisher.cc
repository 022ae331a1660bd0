#include "services/catalog/rpc/catalog_publisher.h"

#include <utility>
#include <vector>

namespace tollgate::catalog {

// No pings: watchers keep the last snapshot anyway, and gRPC detects broken connections. A watcher
// with a full queue is disconnected and starts again with the latest snapshot.
CatalogPublisher::CatalogPublisher(Loop& loop)
    : full_(loop, {.ping_ms = 0, .max_queued = 16}),
      public_(loop, {.ping_ms = 0, .max_queued = 16}) {}

void CatalogPublisher::Publish(const v1::Snapshot& snapshot) {
  v1::WatchCatalogResponse full;
  *full.mutable_snapshot() = snapshot;
  v1::WatchCatalogResponse without_keys = full;
  for (v1::Pool& pool : *without_keys.mutable_snapshot()->mutable_pools()) {
    for (v1::Engine& engine : *pool.mutable_engines()) engine.clear_api_key();
  }
  full_.Publish(std::move(full));
  public_.Publish(std::move(without_keys));
}

void CatalogPublisher::Edition::Publish(v1::WatchCatalogResponse message) {
  {
    std::lock_guard lock(mutex);
    latest = std::make_shared<const v1::WatchCatalogResponse>(message);
  }
  // A watcher that connects now may get the same version twice, which is harmless.
  hub.Publish(std::move(message));
}

std::shared_ptr<const v1::WatchCatalogResponse> CatalogPublisher::Edition::Latest() const {
  std::lock_guard lock(mutex);
  return latest;
}

grpc::ServerWriteReactor<v1::WatchCatalogResponse>* CatalogPublisher::Watch(bool with_engine_keys) {
  Edition& edition = with_engine_keys ? full_ : public_;
  return edition.hub.Open([&edition] {
    std::vector<v1::WatchCatalogResponse> first;
    if (const auto latest = edition.Latest()) first.push_back(*latest);
    return first;
  });
}

}  // namespace tollgate::catalog
