// The inference router as a module of a process: serves Generate and Link calls, runs the requests
// on the engines of the catalog, and settles them.
#pragma once

#include <memory>

#include "common/host/host.h"

namespace tollgate {

std::unique_ptr<Module> MakeInferenceRouterModule(HostContext& context,
                                                  const config::v1::RouterSettings& settings);

}  // namespace tollgate
