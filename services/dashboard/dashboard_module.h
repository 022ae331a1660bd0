// The dashboard as a module of a process. It listens by itself and reports where ("dashboard").
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

std::unique_ptr<Module> MakeDashboardModule(HostContext& context,
                                            const config::v1::DashboardSettings& settings);

}  // namespace tollgate
