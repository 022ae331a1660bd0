// Who may call the methods of people between processes (common/rpc/callers.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::people {

// Services on the admin port that are not part of tollgate.admin.v1.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // Sign-in and sessions: the dashboard only.
    {"tollgate.auth.v1.SessionService/*", rpc::kDashboard},
};

}  // namespace tollgate::people
