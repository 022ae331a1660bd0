// Parses requests to the admin API: from HTTP to the proto of the service call. Strict: unknown
// fields, amounts that are not decimal text and malformed ids are refused. Pure.
#pragma once

#include <variant>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/billing/v1/billing.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::dashboard {

using AdminCall = std::variant<
    auth::v1::ListWorkspacesRequest, auth::v1::CreateWorkspaceRequest, auth::v1::ListKeysRequest,
    auth::v1::CreateKeyRequest, auth::v1::SetKeyStateRequest, auth::v1::ListAuditEventsRequest,
    billing::v1::AddCreditRequest, billing::v1::SetCapRequest, billing::v1::GetBalanceRequest,
    billing::v1::VerifyLedgerRequest, catalog::v1::GetCatalogRequest>;

// The path prefix of the admin API.
inline constexpr std::string_view kAdminPath = "/api/admin/";

// request.path must start with kAdminPath.
Result<AdminCall> ParseAdminCall(const http::HttpRequest& request);

}  // namespace tollgate::dashboard
