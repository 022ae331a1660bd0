// Pushes the latest snapshot to all watchers. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "common/rpc/push_hub.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate::catalog {

class CatalogPublisher {
 public:
  explicit CatalogPublisher(Loop& loop);

  // Sends the snapshot to all watchers, and to every later one first.
  void Publish(const v1::Snapshot& snapshot);
  // The latest snapshot without the API keys of engines; null before the first Publish.
  std::shared_ptr<const v1::WatchCatalogResponse> current() const { return public_.Latest(); }
  // The stream of a new watcher. It starts with the latest snapshot.
  grpc::ServerWriteReactor<v1::WatchCatalogResponse>* Watch(bool with_engine_keys);
  // Ends all streams. Watchers reconnect, to another replica if there is one.
  void Close() {
    full_.hub.Close();
    public_.hub.Close();
  }

 private:
  // The latest snapshot and its watchers.
  struct Edition {
    Edition(Loop& loop, rpc::PushHub<v1::WatchCatalogResponse>::Options options)
        : hub(loop, std::move(options)) {}
    void Publish(v1::WatchCatalogResponse message);
    std::shared_ptr<const v1::WatchCatalogResponse> Latest() const;

    mutable std::mutex mutex;
    std::shared_ptr<const v1::WatchCatalogResponse> latest;
    rpc::PushHub<v1::WatchCatalogResponse> hub;
  };
  Edition full_;    // with the API keys of engines
  Edition public_;  // without
};

}  // namespace tollgate::catalog
