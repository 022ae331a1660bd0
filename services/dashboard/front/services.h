// Services of tollgate.admin.v1 that the dashboard implements itself, because they combine answers
// of several processes. The slot must outlive them.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "services/dashboard/front/peers.h"

namespace tollgate::dashboard {

std::unique_ptr<grpc::Service> MakeEngineService(PeersSlot& slot);
std::unique_ptr<grpc::Service> MakeProcessService(PeersSlot& slot);
std::unique_ptr<grpc::Service> MakeSummaryService(PeersSlot& slot);

}  // namespace tollgate::dashboard
