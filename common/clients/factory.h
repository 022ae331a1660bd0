// Makes the clients of one process. Where each service is comes from the process's TargetsConfig;
// in the all-in-one every target is the process's own gRPC server, in process.
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
}

// Usable from a module's Start on. Thread-safe; what it makes belongs to the loop it is made for.
class ClientFactory {
 public:
  virtual ~ClientFactory() = default;
  virtual std::unique_ptr<AuthClient> Auth(Loop& loop) = 0;
  virtual std::unique_ptr<AuthAdminClient> AuthAdmin(Loop& loop) = 0;
  virtual std::unique_ptr<CatalogClient> Catalog(Loop& loop) = 0;
  virtual std::unique_ptr<RateLimitClient> RateLimit(Loop& loop) = 0;
  virtual std::unique_ptr<BillingClient> Billing(Loop& loop) = 0;
  virtual std::unique_ptr<BillingAdminClient> BillingAdmin(Loop& loop) = 0;
  virtual std::unique_ptr<MeteringClient> Metering(Loop& loop) = 0;
  virtual std::unique_ptr<InferenceClient> Inference(Loop& loop) = 0;
};

// direct is what modules of this process offer: it serves empty targets, as far as it is filled in
// when a client is made. Both must outlive the factory, and "inproc:" must lead somewhere once the
// first client is made.
std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct);

}  // namespace tollgate
