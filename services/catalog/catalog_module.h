// The catalog service as a module: it runs in tollgate-catalog or in tollgate-allinone.
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

std::unique_ptr<Module> MakeCatalogModule(HostContext& context,
                                          const config::v1::CatalogSettings& settings);

}  // namespace tollgate
