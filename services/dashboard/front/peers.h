// The processes that the dashboard's own services ask. Each call runs on one loop of the dashboard.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "common/admin/handle.h"
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

template <typename Response, typename Make>
Task<void> RunFront(PeersSlot& slot, admin::Call call, Response* response, Make make) {
  const std::shared_ptr<const Peers> peers = slot.peers;
  if (peers == nullptr) {
    call.Refuse(Unavailable("the dashboard is not running").error);
    co_return;
  }
  auto result = co_await make(*peers, call.caller());
  if (result) *response = *std::move(result);
  call.Finish(result ? admin::AdminResult<void>() : Fail{result.error()});
}

// Admits the caller, then ends the call with the response that the coroutine make(peers, caller)
// returns. The request lives until then.
template <typename Request, typename Response, typename Make>
grpc::ServerUnaryReactor* ServeFront(PeersSlot& slot, grpc::CallbackServerContext* context,
                                     const Request* request, Response* response, Make make) {
  return admin::Start(context, request, [&](const admin::Call& call) {
    Loop* const loop = slot.loop.load();
    if (loop == nullptr) {
      return call.Refuse(Unavailable("the dashboard is not running").error);
    }
    loop->Spawn(RunFront(slot, call, response, std::move(make)));
  });
}

}  // namespace tollgate::dashboard
