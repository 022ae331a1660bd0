// The auth service as a module: it runs in tollgate-auth or in tollgate-allinone.
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

// targets: null if billing runs in the same process.
std::unique_ptr<Module> MakeAuthModule(HostContext& context,
                                       const config::v1::AuthSettings& settings,
                                       const config::v1::TargetsConfig* targets = nullptr);

}  // namespace tollgate
