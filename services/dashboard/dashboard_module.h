// The dashboard as a module: it runs in tollgate-dashboard or in tollgate-allinone. It opens its
// own listener and reports its address as "dashboard".
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

// targets: addresses of the admin services, if they run in other processes; null: they are in this
// process.
std::unique_ptr<Module> MakeDashboardModule(HostContext& context,
                                            const config::v1::DashboardSettings& settings,
                                            const config::v1::TargetsConfig* targets = nullptr);

}  // namespace tollgate
