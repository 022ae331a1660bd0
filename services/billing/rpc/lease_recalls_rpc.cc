#include "services/billing/rpc/lease_recalls_rpc.h"

#include <algorithm>
#include <utility>

namespace tollgate::billing {

LeaseRecallRpc::LeaseRecallRpc(Loop& loop)
    : hub_(loop, {.make_ping = [latest = latest_] { return latest->Read(); }}) {}

void LeaseRecallRpc::Publish(std::vector<std::string> workspaces) {
  v1::WatchLeaseRecallsResponse list;
  {
    const std::lock_guard lock(latest_->mutex);
    if (std::ranges::equal(latest_->list.workspace_ids(), workspaces)) return;
    latest_->list.mutable_workspace_ids()->Assign(workspaces.begin(), workspaces.end());
    list = latest_->list;
  }
  // A router that connects now may get the same list twice, which is harmless.
  hub_.Publish(std::move(list));
}

grpc::ServerWriteReactor<v1::WatchLeaseRecallsResponse>* LeaseRecallRpc::WatchLeaseRecalls(
    grpc::CallbackServerContext*, const v1::WatchLeaseRecallsRequest*) {
  return hub_.Open([this] { return std::vector{latest_->Read()}; });
}

}  // namespace tollgate::billing
