// Renders service responses as the JSON of the admin API. Amounts are decimal text, times RFC 3339.
#pragma once

#include <string>

#include "common/error/error.h"
#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/billing/v1/billing.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::dashboard {

std::string Render(const auth::v1::ListWorkspacesResponse& response);
std::string Render(const auth::v1::CreateWorkspaceResponse& response);
std::string Render(const auth::v1::ListKeysResponse& response);
std::string Render(const auth::v1::CreateKeyResponse& response);
std::string Render(const auth::v1::SetKeyStateResponse& response);
std::string Render(const auth::v1::ListAuditEventsResponse& response);
std::string Render(const billing::v1::AddCreditResponse& response);
std::string Render(const billing::v1::SetCapResponse& response);
std::string Render(const billing::v1::GetBalanceResponse& response);
std::string Render(const billing::v1::VerifyLedgerResponse& response);
// Engine API keys are left out: has_api_key tells whether one is set.
std::string Render(const catalog::v1::Snapshot& snapshot);
std::string Render(const Error& error);

}  // namespace tollgate::dashboard
