// The services of tollgate.admin.v1 that the dashboard has itself, since several processes know the
// answer. The slot must outlive them.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "services/dashboard/front/peers.h"

namespace tollgate::dashboard {

std::unique_ptr<grpc::Service> MakeEngineService(PeersSlot& slot);
std::unique_ptr<grpc::Service> MakeProcessService(PeersSlot& slot);
std::unique_ptr<grpc::Service> MakeSummaryService(PeersSlot& slot);

}  // namespace tollgate::dashboard
