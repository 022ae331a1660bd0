// The processes that the dashboard's own services ask. Each call runs on one loop of the dashboard.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <utility>

#include "common/admin/access.h"
#include "common/admin/failure.h"
#include "common/observability/log.h"
#include "common/rpc/replicas.h"
#include "common/runtime/loop.h"
#include "common/runtime/task.h"

namespace tollgate::dashboard {

using ReplicasPtr = std::shared_ptr<rpc::Replicas>;

// Lives on the loop of its slot.
struct Peers {
  Loop& loop;
  ReplicasPtr auth, billing, catalog, self;
  // Null if not among the targets.
  ReplicasPtr routers, ratelimits, gateways;
};

// Set while the module runs. Running calls keep the peers alive.
struct PeersSlot {
  std::atomic<Loop*> loop{nullptr};
  std::shared_ptr<const Peers> peers;  // used on the loop only
};

// Timeout of a call to a process, in milliseconds.
inline constexpr int64_t kPeerTimeoutMs = 2'000;

inline grpc::Status FinishStatus(const admin::AdminResult<void>& result) {
  if (!result.ok() && !result.error().internal.empty()) {
    log::Warn("admin call failed",
              {{"reason", result.error().reason}, {"error", result.error().internal}});
  }
  return admin::ToStatus(result);
}

template <typename Make>
Task<void> RunFront(PeersSlot& slot, grpc::ServerUnaryReactor* reactor, Make make) {
  const std::shared_ptr<const Peers> peers = slot.peers;
  admin::AdminResult<void> result =
      Fail{admin::FromError(Unavailable("the dashboard is not running").error)};
  if (peers != nullptr) result = co_await make(*peers);
  reactor->Finish(FinishStatus(result));
}

// Admits the caller, then ends the call with the result of the coroutine make(peers, caller). The
// request and the response live until then.
template <typename Request, typename Make>
grpc::ServerUnaryReactor* ServeFront(PeersSlot& slot, grpc::CallbackServerContext* context,
                                     const Request& request, Make make) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  auto caller = admin::Admit(*context, request);
  Loop* const loop = slot.loop.load();
  if (!caller || loop == nullptr) {
    reactor->Finish(FinishStatus(
        !caller ? admin::AdminResult<void>(Fail{caller.error()})
                : Fail{admin::FromError(Unavailable("the dashboard is not running").error)}));
    return reactor;
  }
  auto run = [make = std::move(make), caller = *std::move(caller)](const Peers& peers) {
    return make(peers, caller);
  };
  loop->Spawn(RunFront(slot, reactor, std::move(run)));
  return reactor;
}

}  // namespace tollgate::dashboard
