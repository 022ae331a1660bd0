// Creates one client of one service from its replicas: for ClientFactory (factory.h), tests, and
// tools that use one service. The client lives on the given loop, which is that of the replicas.
// direct: the direct services of the process, used instead of gRPC; may be null.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/clients/direct.h"
#include "common/runtime/loop.h"

namespace tollgate::rpc {
class Replicas;
}
namespace tollgate::billing::v1 {
class WatchLeaseRecallsResponse;
}

namespace tollgate {

using ReplicasPtr = std::shared_ptr<rpc::Replicas>;

std::unique_ptr<AuthClient> MakeAuthClient(Loop& loop, ReplicasPtr replicas);
std::unique_ptr<CatalogClient> MakeCatalogClient(Loop& loop, ReplicasPtr replicas);
std::unique_ptr<RateLimitClient> MakeRateLimitClient(Loop& loop, ReplicasPtr replicas,
                                                     const DirectServices* direct = nullptr);
std::unique_ptr<BillingClient> MakeBillingClient(Loop& loop, ReplicasPtr replicas,
                                                 const DirectServices* direct = nullptr);
std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ReplicasPtr replicas);
std::unique_ptr<MeteringClient> MakeMeteringClient(Loop& loop, ReplicasPtr replicas,
                                                   const DirectServices* direct = nullptr);
// Recalls of leases (billing.v1.LeaseRecallService). Never direct: a stream is not a call.
std::unique_ptr<Subscription> WatchLeaseRecalls(
    Loop& loop, ReplicasPtr replicas, WatchHandler<billing::v1::WatchLeaseRecallsResponse> handler);

}  // namespace tollgate
