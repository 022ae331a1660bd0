// The gateway as a module of a process: edge, endpoints and workers.
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {

std::unique_ptr<Module> MakeGatewayModule(HostContext& host,
                                          const config::v1::GatewaySettings& settings);

}  // namespace tollgate
