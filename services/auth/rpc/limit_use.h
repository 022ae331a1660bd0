// What is left of limits, and what was used of them in the last hour (LimitService.GetLimitUsage
// and its like).
#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>
#include <vector>

#include "services/auth/domain/limit_set.h"
#include "services/auth/rpc/auth_backend.h"
#include "tollgate/admin/v1/limits.pb.h"

namespace tollgate::auth {

// At most so many are asked for in one call.
inline constexpr size_t kMaxUseSubjects = 1000;

// Whose limits to ask for.
struct UseSubject {
  std::string workspace;
  std::string key;    // empty: the workspace
  std::string model;  // empty: all models
  LimitValues limits;
  // Where the answer goes; lives until the call ends.
  admin::v1::LimitUsage* usage = nullptr;
};

enum class UseDetail : uint8_t { kHour, kMinutes };

// Asks the limiter and ends the call, on any thread.
void AskForUse(const Peers& peers, std::vector<UseSubject> subjects, UseDetail detail,
               grpc::ServerUnaryReactor* reactor);

// The limits of a workspace, without those of a plan in shadow mode.
std::vector<UseSubject> SubjectsOf(const std::string& workspace,
                                   const AuthStore::WorkspaceLimits& limits,
                                   admin::v1::LimitUsage& usage);
// The same of a key, which has the limits that apply.
std::vector<UseSubject> SubjectsOf(const v1::Key& key, admin::v1::LimitUsage& usage);

}  // namespace tollgate::auth
