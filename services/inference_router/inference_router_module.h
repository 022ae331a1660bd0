// The inference router as a module of a process: takes Generate and Link calls, runs them at the
// engines of the catalog, and settles them.
#pragma once

#include <memory>

#include "common/host/host.h"

namespace tollgate {

std::unique_ptr<Module> MakeInferenceRouterModule(HostContext& context,
                                                  const config::v1::RouterSettings& settings);

}  // namespace tollgate
