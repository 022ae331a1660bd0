// The three gRPC services of the ledger. Handlers only enqueue; the ledger's threads reply.
#pragma once

#include <memory>
#include <vector>

#include "common/clients/direct.h"
#include "services/billing/commit/ledger_service.h"

namespace grpc {
class Service;
}

namespace tollgate::billing {

// BillingService, MeteringService, BillingAdminService over one ledger, which must outlive them.
std::vector<std::unique_ptr<grpc::Service>> MakeRpcServices(LedgerService& ledger);

// The calls on the request path, without gRPC, for modules of the same process.
void OfferDirect(LedgerService& ledger, DirectServices& direct);

}  // namespace tollgate::billing
