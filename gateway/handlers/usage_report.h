// The body of GET /api/v1/usage, described in docs/usage-report.md. Amounts are exact decimals in
// USD, printed from integers (decisions 10, 29).
#pragma once

#include <optional>
#include <string>

#include "gateway/handlers/usage_period.h"
#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/billing/v1/billing.pb.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

struct UsageReport {
  UsagePeriod period;
  billing::v1::GetUsageResponse usage;
  // Remaining limits of the key and of its workspace; empty if unknown.
  std::optional<ratelimit::v1::PeekResponse> key_remaining;
  std::optional<ratelimit::v1::PeekResponse> workspace_remaining;
};

std::string RenderUsageReport(const auth::v1::Key& key, const UsageReport& report);

}  // namespace tollgate::gateway
