// What workspaces and keys may look like and what may happen to them. Pure. spec: gateway-spec.md
// "Virtual key", reliability.md section 3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"

namespace tollgate::auth {

enum class State : uint8_t { kActive = 1, kDisabled = 2, kRevoked = 3 };

struct LimitValues {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;
  int64_t concurrent_requests = 0;
};

// Each fails with bad_request and the field in param.
Result<void> CheckWorkspaceId(std::string_view id);
Result<void> CheckName(std::string_view name);
Result<void> CheckLimits(const LimitValues& limits);
// 0 is never; anything else must still lie ahead.
Result<void> CheckExpiry(int64_t expires_at_us, int64_t now_us);
Result<void> CheckAllowedModels(const std::vector<std::string>& models);
Result<void> CheckRequestId(std::string_view request_id);
// Free text of people in the audit log: who and why.
Result<void> CheckRemark(std::string_view text, std::string_view field);

// Whether a key may go from one state to the other: revoked is final. The same state again is
// allowed and changes nothing.
Result<void> CheckTransition(State from, State to);
std::string_view StateName(State state);

}  // namespace tollgate::auth
