// Pushes the recalls of leases to the routers (docs/adr/0052).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/rpc/push_hub.h"
#include "tollgate/billing/v1/lease_recalls.grpc.pb.h"

namespace tollgate::billing {

// Thread-safe.
class LeaseRecallRpc : public v1::LeaseRecallService::CallbackService {
 public:
  // The loop must outlive it.
  explicit LeaseRecallRpc(Loop& loop);

  // Sends the list to all routers if it has changed. workspaces: those whose leases must end at
  // once.
  void Publish(std::vector<std::string> workspaces);
  // Ends all streams. Routers reconnect, to another replica if there is one.
  void Close() { hub_.Close(); }

  grpc::ServerWriteReactor<v1::WatchLeaseRecallsResponse>* WatchLeaseRecalls(
      grpc::CallbackServerContext*, const v1::WatchLeaseRecallsRequest*) override;

 private:
  // Shared with the hub's pings, which may outlive this object.
  struct Latest {
    std::mutex mutex;
    v1::WatchLeaseRecallsResponse list;
    v1::WatchLeaseRecallsResponse Read() {
      const std::lock_guard lock(mutex);
      return list;
    }
  };
  const std::shared_ptr<Latest> latest_ = std::make_shared<Latest>();
  rpc::PushHub<v1::WatchLeaseRecallsResponse> hub_;
};

}  // namespace tollgate::billing
