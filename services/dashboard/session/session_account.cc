// SessionApi for people with a session: session and account.
#include "common/base/clock.h"
#include "common/json/writer.h"
#include "services/dashboard/session/session_call.h"

namespace tollgate::dashboard {

namespace v1 = auth::v1;
using Stub = SessionClient::Stub;

namespace {

std::string IdentityJson(const common::v1::Identity& identity) {
  const std::string members =
      json::WriteArray(identity.memberships(), [](const common::v1::Membership& membership) {
        std::string role = common::v1::Role_Name(membership.role()).substr(5);
        for (char& c : role) c = static_cast<char>(c | 0x20);
        return json::Writer()
            .Text("workspace", "workspaces/" + membership.workspace())
            .Text("role", role)
            .Done();
      });
  return json::Writer()
      .Text("name", "users/" + identity.user_id())
      .Text("display_name", identity.display_name())
      .Flag("platform_operator", identity.platform_operator())
      .Raw("memberships", members)
      .Done();
}

}  // namespace

Task<http::HttpResponse> SessionApi::SignOut(const Call& call) {
  v1::SignOutRequest request;
  request.set_cookie(call.cookie);
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignOut, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  http::HttpResponse response = Json(200, R"({"state":"SIGNED_OUT"})");
  response.headers.emplace_back("set-cookie", cookies_.EndSession());
  co_return response;
}

Task<http::HttpResponse> SessionApi::StepUp(const Call& call) {
  v1::ReauthenticateRequest request;
  request.set_cookie(call.cookie);
  request.set_password(call.Text("password"));
  request.set_code(call.Text("code"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::Reauthenticate, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return SignedIn(answer.response.session());
}

Task<http::HttpResponse> SessionApi::SetPassword(const Call& call) {
  v1::SetPasswordRequest request;
  request.set_cookie(call.cookie);
  request.set_current_password(call.Text("current_password"));
  request.set_new_password(call.Text("new_password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SetPassword, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return SignedIn(answer.response.session());
}

Task<http::HttpResponse> SessionApi::StartTotp(const Call& call) {
  v1::StartTotpRequest request;
  request.set_cookie(call.cookie);
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::StartTotp, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return Json(200, json::Writer()
                          .Text("secret", answer.response.secret())
                          .Text("uri", answer.response.uri())
                          .Done());
}

Task<http::HttpResponse> SessionApi::ConfirmTotp(const Call& call) {
  v1::ConfirmTotpRequest request;
  request.set_cookie(call.cookie);
  request.set_code(call.Text("code"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::ConfirmTotp, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return Json(200, json::Writer()
                          .Raw("recovery_codes", json::WriteArray(answer.response.recovery_codes(),
                                                                  [](const std::string& code) {
                                                                    return json::Quoted(code);
                                                                  }))
                          .Done());
}

Task<http::HttpResponse> SessionApi::DisableTotp(const Call& call) {
  v1::DisableTotpRequest request;
  request.set_cookie(call.cookie);
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::DisableTotp, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return Json(200, "{}");
}

Task<http::HttpResponse> SessionApi::Show(const Call& call) {
  v1::ResolveRequest request;
  request.set_cookie(call.cookie);
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Resolve(call.loop, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  if (!answer.response.has_identity()) co_return Json(200, R"({"state":"SIGNED_OUT"})");
  const common::v1::Identity& identity = answer.response.identity();
  co_return Json(200, json::Writer()
                          .Text("state", "SIGNED_IN")
                          .Text("csrf_token", answer.response.csrf_token())
                          .Number("signed_in_us", identity.signed_in_us())
                          .Raw("user", IdentityJson(identity))
                          .Done());
}

Task<http::HttpResponse> SessionApi::ShowSite(const Call& call) {
  const auto answer = co_await client_.DescribeSignIn(call.loop);
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return Json(200,
                 json::Writer()
                     .Text("base_url", options_.base_url)
                     .Text("version", TOLLGATE_VERSION)
                     .Flag("oidc", answer.response.oidc())
                     .Flag("mail", answer.response.mail())
                     .Flag("self_service_workspaces", answer.response.self_service_workspaces())
                     .Done());
}

}  // namespace tollgate::dashboard
