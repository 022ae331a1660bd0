// Creates the clients of this process's modules for the targets of its TargetsConfig. Each is a
// gRPC client, or a direct one for a service in the same process. Modules use this header;
// make_clients.h is the layer below it.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/clients/direct.h"
#include "common/runtime/loop.h"

namespace tollgate {

namespace billing::v1 {
class WatchLeaseRecallsResponse;
}
namespace config::v1 {
class TargetsConfig;
}
namespace rpc {
class ChannelSource;
class Replicas;
}  // namespace rpc

// The processes with admin services (decision 62). kSelf: this process.
enum class AdminTarget { kAuth, kBilling, kCatalog, kRouter, kSelf };

// Thread-safe. Usable after Module::Start begins. A client belongs to the loop it is created for.
class ClientFactory {
 public:
  virtual ~ClientFactory() = default;
  virtual std::unique_ptr<AuthClient> Auth(Loop& loop) = 0;
  virtual std::unique_ptr<CatalogClient> Catalog(Loop& loop) = 0;
  virtual std::unique_ptr<RateLimitClient> RateLimit(Loop& loop) = 0;
  virtual std::unique_ptr<BillingClient> Billing(Loop& loop) = 0;
  virtual std::unique_ptr<BillingAdminClient> BillingAdmin(Loop& loop) = 0;
  virtual std::unique_ptr<MeteringClient> Metering(Loop& loop) = 0;
  // The workspaces whose leases on credit must end at once. Each message is the complete list.
  virtual std::unique_ptr<Subscription> WatchLeaseRecalls(
      Loop& loop, WatchHandler<billing::v1::WatchLeaseRecallsResponse> handler) = 0;
  virtual std::unique_ptr<InferenceClient> Inference(Loop& loop) = 0;
  // For calls to any admin service; must be destroyed on the loop.
  virtual std::shared_ptr<rpc::Replicas> AdminReplicas(AdminTarget target, Loop& loop) = 0;
  // Processes without admin services. Null if their gRPC addresses are not among the targets.
  enum class OtherTarget { kGateway, kRateLimit };
  virtual std::shared_ptr<rpc::Replicas> OtherReplicas(OtherTarget target, Loop& loop) = 0;
  // Stops health checks of replicas. Call it before the loops stop, and not on a loop.
  virtual void Stop() {}
};

// direct: the direct services of this process. A client for an empty target uses its direct service
// if that is set when the client is created. channels and direct must outlive the factory, and the
// target "inproc:" must be set before the first client is created.
std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct);

}  // namespace tollgate
