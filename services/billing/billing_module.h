// The ledger as a module of a process.
#pragma once

#include <memory>

#include "common/host/host.h"

namespace tollgate {

std::unique_ptr<Module> MakeBillingModule(HostContext& context,
                                          const config::v1::BillingSettings& settings);

}  // namespace tollgate
