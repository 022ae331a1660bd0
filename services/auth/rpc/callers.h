// Who may call the methods of auth between processes (common/rpc/callers.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::auth {

inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.auth.v1.AuthService/VerifyKey", rpc::kGateway},
    {"tollgate.auth.v1.AuthService/WatchKeys", rpc::kGateway},
    {"tollgate.auth.v1.AuthService/ReadVersion", rpc::kGateway},
    {"tollgate.auth.v1.AuthService/ReportKeyUse", rpc::kGateway},
};

// Of the admin services that are not of tollgate.admin.v1.
inline constexpr rpc::MethodCallers kAdminCallers[] = {
    // Who is signed in: a question of the dashboard's front only.
    {"tollgate.auth.v1.SessionService/*", rpc::kDashboard},
    // What the dashboard's own services ask.
    {"tollgate.auth.v1.FrontService/*", rpc::kDashboard},
};

}  // namespace tollgate::auth
