// Creates the clients that a module of this process uses, for the targets of its TargetsConfig.
// Each is a gRPC client, or a direct one for a service in the same process. Modules use this
// header; make_clients.h is the layer below it.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/clients/direct.h"
#include "common/runtime/loop.h"

namespace tollgate {

namespace config::v1 {
class TargetsConfig;
}
namespace rpc {
class ChannelSource;
class Replicas;
}  // namespace rpc

// The processes with admin services (decision 62). kSelf: this process.
enum class AdminTarget { kAuth, kBilling, kCatalog, kRouter, kSelf };

// Thread-safe. Usable from a module's Start on. A client belongs to the loop it is created for.
class ClientFactory {
 public:
  virtual ~ClientFactory() = default;
  virtual std::unique_ptr<AuthClient> Auth(Loop& loop) = 0;
  virtual std::unique_ptr<CatalogClient> Catalog(Loop& loop) = 0;
  virtual std::unique_ptr<RateLimitClient> RateLimit(Loop& loop) = 0;
  virtual std::unique_ptr<BillingClient> Billing(Loop& loop) = 0;
  virtual std::unique_ptr<BillingAdminClient> BillingAdmin(Loop& loop) = 0;
  virtual std::unique_ptr<MeteringClient> Metering(Loop& loop) = 0;
  virtual std::unique_ptr<InferenceClient> Inference(Loop& loop) = 0;
  // For calls of any admin service; must be destroyed on the loop.
  virtual std::shared_ptr<rpc::Replicas> AdminReplicas(AdminTarget target, Loop& loop) = 0;
  // The processes of a service that has no admin services, as far as their gRPC addresses are among
  // the targets; null: they are not.
  enum class OtherTarget { kGateway, kRateLimit };
  virtual std::shared_ptr<rpc::Replicas> OtherReplicas(OtherTarget target, Loop& loop) = 0;
  // Asks no replica for its health any more. Before the loops stop; not on a loop.
  virtual void Stop() {}
};

// direct: the direct services of this process. A client for an empty target uses it if the service
// is filled in when the client is created. channels and direct must outlive the factory, and the
// target "inproc:" must be set before the first client is created.
std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct);

}  // namespace tollgate
