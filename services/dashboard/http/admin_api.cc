#include "services/dashboard/http/admin_api.h"

#include <google/protobuf/descriptor.h>

#include "common/admin/caller.h"
#include "common/admin/failure.h"
#include "common/base/crypto.h"
#include "services/dashboard/http/page.h"
#include "services/dashboard/http/same_origin.h"
#include "tollgate/admin/v1/rule.pb.h"

namespace tollgate::dashboard {
namespace {

http::Headers SecurityHeaders() {
  http::Headers headers;
  AddSecurityHeaders(headers);
  return headers;
}

bool IsRead(const http::HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
}

}  // namespace

std::optional<AdminTarget> TargetOf(const google::protobuf::ServiceDescriptor& service) {
  switch (service.options().GetExtension(admin::v1::home)) {
    case admin::v1::HOME_AUTH:
      return AdminTarget::kAuth;
    case admin::v1::HOME_BILLING:
      return AdminTarget::kBilling;
    case admin::v1::HOME_CATALOG:
      return AdminTarget::kCatalog;
    case admin::v1::HOME_DASHBOARD:
      return AdminTarget::kSelf;
    default:
      return std::nullopt;
  }
}

AdminApi::AdminApi(CredentialSource& credentials, Options options, transcode::RouteTable routes)
    : credentials_(credentials),
      public_url_(std::move(options.public_url)),
      transcoder_(std::move(routes), std::move(options.channel_to),
                  {.response_headers = SecurityHeaders()}) {}

Result<std::unique_ptr<AdminApi>> AdminApi::Make(CredentialSource& credentials, Options options) {
  auto routes = transcode::RouteTable::Make(transcode::ServicesOf("tollgate.admin.v1"));
  if (!routes.ok()) return Internal("the admin API's google.api.http options: " + routes.error());
  return std::unique_ptr<AdminApi>(
      new AdminApi(credentials, std::move(options), std::move(*routes)));
}

std::optional<grpc::Status> AdminApi::Judge(const http::HttpRequest& request,
                                            const std::optional<Credential>& credential) const {
  if (!credential) {
    return admin::ToStatus(admin::Failure{
        .code = grpc::StatusCode::UNAUTHENTICATED,
        .reason = "SIGN_IN_REQUIRED",
        .message = "Sign in, or send an access token as Authorization: Bearer TOKEN."});
  }
  // A browser sends the cookie with requests from any site. Writes therefore also need a header
  // that only our pages can set. Checked before routing, because a method override changes the
  // route.
  if (credential->csrf_token.empty() || IsRead(request)) return std::nullopt;
  if (!IsSameOrigin(request, public_url_)) {
    return admin::ToStatus(
        admin::PermissionDenied("CROSS_SITE_REQUEST", "The request comes from another site's page.")
            .error);
  }
  if (!ConstantTimeEquals(Sha256(request.header("x-csrf-token")), Sha256(credential->csrf_token))) {
    return admin::ToStatus(
        admin::PermissionDenied("CSRF_TOKEN_REQUIRED",
                                "The header x-csrf-token must hold the session's token; load the "
                                "page again.")
            .error);
  }
  return std::nullopt;
}

Task<void> AdminApi::Serve(http::Exchange& exchange) {
  const http::HttpRequest& request = exchange.request();
  auto credential = co_await credentials_.Resolve(request, exchange.loop());
  if (!credential.ok()) {
    co_await exchange.Send(
        transcoder_.Refusal(admin::ToStatus(admin::FromError(credential.error()))));
    co_return;
  }
  if (const auto refused = Judge(request, *credential)) {
    co_await exchange.Send(transcoder_.Refusal(*refused));
    co_return;
  }
  common::v1::Identity& identity = (*credential)->identity;
  identity.set_address(request.peer_address);
  transcode::Metadata own;
  own.emplace_back(admin::kIdentityKey, identity.SerializeAsString());
  co_await transcoder_.Serve(exchange, std::move(own));
}

}  // namespace tollgate::dashboard
