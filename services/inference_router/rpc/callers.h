// Which processes may call the methods of an inference router (common/rpc/callers.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::inference_router {

inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.inference.v1.InferenceService/Generate", rpc::kGateway},
    {"tollgate.inference.v1.InferenceService/Link", rpc::kGateway},
    {"tollgate.inference.v1.InferenceService/CountTokens", rpc::kGateway},
};

// Methods at the admin address.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // The dashboard has checked the caller and written the change to the audit log.
    {"tollgate.inference.v1.EngineAdminService/*", rpc::kDashboard},
};

}  // namespace tollgate::inference_router
