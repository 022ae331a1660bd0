// Who may call the methods of ratelimit between processes (common/rpc/callers.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::ratelimit {

inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.ratelimit.v1.RateLimitService/Acquire", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/AcquireCalls", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/Release", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/ReleaseCalls", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/Renew", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/Peek", rpc::kGateway},
    {"tollgate.ratelimit.v1.RateLimitService/GetUse", rpc::kAuth},
};

}  // namespace tollgate::ratelimit
