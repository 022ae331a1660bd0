// The rate limit service as a module: it runs in tollgate-ratelimit or in tollgate-allinone.
#pragma once

#include <memory>

#include "common/host/host.h"
#include "common/host/module.h"

namespace tollgate {

std::unique_ptr<Module> MakeRateLimitModule(HostContext& context,
                                            const config::v1::RateLimitSettings& settings);

}  // namespace tollgate
