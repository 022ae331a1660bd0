// Remaining limits, and their use in the last hour (LimitService.GetLimitUsage and the list calls).
#pragma once

#include <string>
#include <vector>

#include "common/admin/handle.h"
#include "services/auth/domain/limit_set.h"
#include "services/auth/rpc/auth_backend.h"
#include "tollgate/admin/v1/limits.pb.h"

namespace tollgate::auth {

// Most subjects in one call.
inline constexpr size_t kMaxUseSubjects = 1000;

// A subject whose limits are asked for.
struct UseSubject {
  std::string workspace;
  std::string key;    // empty: the workspace
  std::string model;  // empty: all models
  LimitValues limits;
  // Receives the answer; valid until the call ends.
  admin::v1::LimitUsage* usage = nullptr;
};

enum class UseDetail : uint8_t { kHour, kMinutes };

// Asks the limiter and ends the call, on any thread.
void AskForUse(const Peers& peers, std::vector<UseSubject> subjects, UseDetail detail,
               const admin::Call& call);

// Limits of a workspace, without those of a plan in shadow mode.
std::vector<UseSubject> SubjectsOf(const std::string& workspace,
                                   const AuthStore::WorkspaceLimits& limits,
                                   admin::v1::LimitUsage& usage);
// Limits that apply to a key.
std::vector<UseSubject> SubjectsOf(const v1::Key& key, admin::v1::LimitUsage& usage);

}  // namespace tollgate::auth
