// Hands the newest snapshot to everybody who watches. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "common/rpc/push_hub.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate::catalog {

class CatalogPublisher {
 public:
  explicit CatalogPublisher(Loop& loop);

  // To all watchers now, and to every new one.
  void Publish(const v1::Snapshot& snapshot);
  // The newest answer; null before the first.
  std::shared_ptr<const v1::WatchCatalogResponse> current() const;
  // A new watcher's stream: begins with the newest snapshot.
  grpc::ServerWriteReactor<v1::WatchCatalogResponse>* Watch();
  // Ends all streams; watchers come back, to another replica if there is one.
  void Close() { hub_.Close(); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const v1::WatchCatalogResponse> current_;
  rpc::PushHub<v1::WatchCatalogResponse> hub_;
};

}  // namespace tollgate::catalog
