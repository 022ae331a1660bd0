// The gateway as a module of a process: edge, endpoints and workers.
#pragma once

#include <cstdint>
#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {

// Start refuses connections until there are a catalog and a message from auth, for at most
// ready_wait_ms.
std::unique_ptr<Module> MakeGatewayModule(HostContext& host,
                                          const config::v1::GatewaySettings& settings,
                                          int64_t ready_wait_ms = 3'000);

}  // namespace tollgate
