// What the RPC handlers call while the service runs: the key store, the threads that may block on
// its database, the change feed and the open watch streams.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "common/rpc/server.h"
#include "services/auth/rpc/watch_stream.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/change_feed.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"

namespace tollgate::auth {

// Shared with its streams: gRPC may end the last of them after the module has been destroyed.
class AuthBackend : public std::enable_shared_from_this<AuthBackend> {
 public:
  AuthBackend(std::unique_ptr<AuthStore> store, int threads, const Clock& clock);
  ~AuthBackend() { Stop(); }

  AuthStore& store() { return *store_; }
  // Every store call runs here: it may block on the database, which gRPC's threads must not.
  rpc::ThreadPool& workers() { return workers_; }
  ChangeFeed& feed() { return feed_; }

  void Start() { feed_.Start(); }
  std::shared_ptr<WatchStream> Watch(const v1::WatchKeysRequest& request);
  // Ends all streams. Watchers reconnect, to another replica if there is one.
  void CloseStreams();
  void Stop();

 private:
  std::unique_ptr<AuthStore> store_;
  rpc::ThreadPool workers_;
  ChangeFeed feed_;
  std::mutex mutex_;
  std::list<std::shared_ptr<WatchStream>> streams_;
  bool closed_ = false;
};

}  // namespace tollgate::auth
