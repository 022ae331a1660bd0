// Pushes the latest snapshot to all watchers. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "common/rpc/push_hub.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate::catalog {

class CatalogPublisher {
 public:
  explicit CatalogPublisher(Loop& loop);

  // Sends the snapshot to all watchers, and to every later one first.
  void Publish(const v1::Snapshot& snapshot);
  // The latest snapshot; null before the first Publish.
  std::shared_ptr<const v1::WatchCatalogResponse> current() const;
  // The stream of a new watcher: starts with the latest snapshot.
  grpc::ServerWriteReactor<v1::WatchCatalogResponse>* Watch();
  // Ends all streams. Watchers reconnect, to another replica if there is one.
  void Close() { hub_.Close(); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const v1::WatchCatalogResponse> current_;
  rpc::PushHub<v1::WatchCatalogResponse> hub_;
};

}  // namespace tollgate::catalog
