// The dashboard as a module: it runs in tollgate-dashboard or in tollgate-allinone. It has a
// listener of its own and reports its address as "dashboard".
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

std::unique_ptr<Module> MakeDashboardModule(HostContext& context,
                                            const config::v1::DashboardSettings& settings);

}  // namespace tollgate
