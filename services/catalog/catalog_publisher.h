// Hands the newest snapshot to everybody who watches. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "common/rpc/push_stream.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate::catalog {

class CatalogPublisher {
 public:
  using Stream = rpc::PushStream<v1::WatchCatalogResponse>;

  // To all watchers now, and to every new one.
  void Publish(const v1::Snapshot& snapshot);
  // The newest answer; null before the first.
  Stream::MessagePtr current() const;
  // A stream for a new watcher: it has the newest snapshot already.
  std::shared_ptr<Stream> Watch();
  // Ends all streams; watchers come back, to another replica if there is one.
  void Close();
  int watchers() const;

 private:
  mutable std::mutex mutex_;
  Stream::MessagePtr current_;
  std::list<std::shared_ptr<Stream>> streams_;
  bool closed_ = false;
};

}  // namespace tollgate::catalog
