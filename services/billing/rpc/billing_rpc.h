// The gRPC services of the ledger. Handlers only enqueue; the ledger's threads reply.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/clients/direct.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/rpc/admin_calls.h"

namespace grpc {
class Service;
}

namespace tollgate::billing {

// BillingService and MeteringService for one ledger, which must outlive them.
struct RpcServices {
  std::vector<std::unique_ptr<grpc::Service>> services;
  // Ends the streams of calls. Clients continue with another replica.
  std::function<void()> close_streams;
};
RpcServices MakeRpcServices(LedgerService& ledger);
// The services of the admin address that need only the ledger.
std::vector<std::unique_ptr<grpc::Service>> MakeAdminServices(LedgerService& ledger,
                                                              AdminOptions admin = {});

// Offers the calls of the request path without gRPC to modules of the same process.
void OfferDirect(LedgerService& ledger, DirectServices& direct);

}  // namespace tollgate::billing
