// The people service as a module: it runs in tollgate-auth or in tollgate-allinone.
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

// Its database is that of auth, whose module must start first: it applies the migrations.
std::unique_ptr<Module> MakePeopleModule(HostContext& context,
                                         const config::v1::AuthSettings& settings);

}  // namespace tollgate
