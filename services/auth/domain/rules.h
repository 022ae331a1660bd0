// Validation of workspaces and virtual keys. Pure.
// See docs/contract.md "Virtual key", docs/design/keys.md 3.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"

namespace tollgate::auth {

struct LimitValues {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;
  int64_t concurrent_requests = 0;
};

// Each check fails with bad_request and names the field in param.
Result<void> CheckWorkspaceId(std::string_view id);
Result<void> CheckName(std::string_view name);
Result<void> CheckLimits(const LimitValues& limits);
// 0 means never; any other time must be in the future.
Result<void> CheckExpiry(int64_t expires_at_us, int64_t now_us);
// Model ids, or namespace/* for all models of a namespace.
Result<void> CheckAllowedModels(const std::vector<std::string>& models);
// IP addresses and networks.
Result<void> CheckAllowedAddresses(const std::vector<std::string>& addresses);
Result<void> CheckLabels(const std::map<std::string, std::string>& labels);
// Monthly spend quota.
Result<void> CheckQuota(int64_t quota_nano_usd);
// Free text in the audit log: the actor and the reason.
Result<void> CheckRemark(std::string_view text, std::string_view field);

}  // namespace tollgate::auth
