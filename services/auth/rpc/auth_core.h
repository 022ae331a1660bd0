// What the auth service runs on once it has started: storage, its threads and the change feed.
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

// Shared with its streams: gRPC may end the last of them after the module is gone.
class AuthCore : public std::enable_shared_from_this<AuthCore> {
 public:
  using Stream = WatchStream;

  AuthCore(std::unique_ptr<AuthStore> store, int threads, const Clock& clock);
  ~AuthCore() { Stop(); }

  AuthStore& store() { return *store_; }
  // May block on the database: gRPC has too few threads of its own to lend one.
  rpc::WorkerPool& workers() { return workers_; }
  ChangeFeed& feed() { return feed_; }

  void Start() { feed_.Start(); }
  std::shared_ptr<Stream> Watch(int64_t after_version);
  // Ends all streams; watchers come back, to another replica if there is one.
  void CloseStreams();
  void Stop();

 private:
  std::unique_ptr<AuthStore> store_;
  rpc::WorkerPool workers_;
  ChangeFeed feed_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Stream>> streams_;
  bool closed_ = false;
};

}  // namespace tollgate::auth
