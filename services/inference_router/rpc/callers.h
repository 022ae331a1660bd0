// Who may call the methods of an inference router between processes (common/rpc/callers.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::inference_router {

inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.inference.v1.InferenceService/Generate", rpc::kGateway},
    {"tollgate.inference.v1.InferenceService/Link", rpc::kGateway},
    {"tollgate.inference.v1.InferenceService/CountTokens", rpc::kGateway},
};

// At the admin address.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // It has checked who asks, and has written the change into the audit log.
    {"tollgate.inference.v1.EngineAdminService/*", rpc::kDashboard},
};

}  // namespace tollgate::inference_router
