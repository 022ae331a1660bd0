// Builds the summary of a workspace from the answers of the services. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tollgate/admin/v1/engines.pb.h"
#include "tollgate/admin/v1/summary.pb.h"
#include "tollgate/auth/v1/front.pb.h"
#include "tollgate/billing/v1/summary.pb.h"

namespace tollgate::dashboard {

// Start of the current day in an IANA time zone; UTC if the zone is unknown.
int64_t DayStartUs(int64_t now_us, const std::string& time_zone);

// Full days that the credit lasts at the average spend of seven days; nullopt if nothing was spent.
std::optional<int32_t> DaysLeft(int64_t available_nano_usd, int64_t week_nano_usd);

// A null part means that the service did not answer.
struct SummaryParts {
  const auth::v1::ReadWorkspaceFactsResponse* facts = nullptr;
  const billing::v1::ReadSummaryResponse* ledger = nullptr;
  const std::map<std::string, admin::v1::Engine>* engines = nullptr;
};
admin::v1::Summary MakeSummary(const std::string& workspace, const std::string& time_zone,
                               int64_t day_start_us, const SummaryParts& parts);

}  // namespace tollgate::dashboard
