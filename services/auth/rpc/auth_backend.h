// State of the RPC handlers while the service runs: the key store, the threads that may block on
// its database, the change feed and the open watch streams.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/admin/failure.h"
#include "common/audit/refusal_writer.h"
#include "common/rpc/server.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/rpc/audit_copier.h"
#include "services/auth/rpc/housekeeper.h"
#include "services/auth/rpc/watch_stream.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/storage/change_feed.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.pb.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::auth {

// Calls of other services. Each invokes `done` once, on any thread, and never blocks. Null if the
// service is not among the targets of this process.
struct Peers {
  template <typename Request, typename Response>
  using Ask = std::function<void(Request, std::function<void(Result<Response>)> done)>;

  // Opens a workspace's wallet in billing. Idempotent.
  std::function<void(std::string workspace, std::function<void(admin::AdminResult<void>)> done)>
      open_wallet;
  // Asks billing whether the workspace has no credit, holds or debts. If so, billing charges none
  // of its cards from now on.
  Ask<std::string, bool> prepare_close;
  Ask<billing::v1::ListKeySpendRequest, billing::v1::ListKeySpendResponse> key_spend;
  // Asks what is left of limits, and what was used of them.
  Ask<ratelimit::v1::GetUseRequest, ratelimit::v1::GetUseResponse> limit_use;
};

struct BackendOptions {
  PolicyOptions policy;
  // Every person may create workspaces.
  bool self_service = false;
  Peers peers;
  // Services whose audit entries are copied.
  std::vector<AuditSource> audit_sources;
  Housekeeper::Options housekeeping;
  ChangeFeed::Options feed;
};

// Counts an admin call that changes something.
void CountChange(const char* kind, bool done);

// Shared with its streams, because gRPC may end the last one after the module was destroyed.
class AuthBackend : public std::enable_shared_from_this<AuthBackend> {
 public:
  AuthBackend(std::unique_ptr<AuthStore> store, int threads, const Clock& clock,
              BackendOptions options = {});
  ~AuthBackend() { Stop(); }

  AuthStore& store() { return *store_; }
  // Every store call runs here: it may block on the database, and gRPC's threads must not block.
  rpc::ThreadPool& workers() { return workers_; }
  ChangeFeed& feed() { return feed_; }

  const PolicyOptions& policy() const { return options_.policy; }
  bool self_service() const { return options_.self_service; }
  // The checkpoints that :verify compares the audit log with.
  AuditCheckpoints checkpoints() const;
  const std::vector<AuditSource>& audit_sources() const { return copier_.sources(); }
  void OpenWallet(std::string workspace, std::function<void(admin::AdminResult<void>)> done);
  const Peers& peers() const { return options_.peers; }

  // Fails if the key or the file of checkpoints cannot be used.
  Result<void> Start();
  std::shared_ptr<WatchStream> Watch(const v1::WatchKeysRequest& request);
  // Ends all streams. Watchers reconnect, to another replica if there is one.
  void CloseStreams();
  void Stop();

 private:
  const BackendOptions options_;
  std::unique_ptr<AuthStore> store_;
  rpc::ThreadPool workers_;
  ChangeFeed feed_;
  Housekeeper housekeeper_;
  AuditCopier copier_;
  audit::RefusalWriter refusals_;
  std::mutex mutex_;
  std::list<std::shared_ptr<WatchStream>> streams_;
  bool closed_ = false;
};

// Null before Start and after Stop: calls fail with UNAVAILABLE then.
using BackendSlot = std::atomic<AuthBackend*>;

}  // namespace tollgate::auth
