#include "services/dashboard/session/session_api.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/json/writer.h"
#include "services/dashboard/http/same_origin.h"
#include "services/dashboard/session/session_call.h"

namespace tollgate::dashboard {

namespace v1 = auth::v1;
using Stub = SessionClient::Stub;

namespace {

constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

}  // namespace

const SessionApi::Route SessionApi::kPosts[] = {
    {"signIn", &SessionApi::SignIn, false},
    {"secondStep", &SessionApi::SecondStep, false},
    {"link", &SessionApi::Link, false},
    {"invitation", &SessionApi::Invitation, false},
    {"forgotPassword", &SessionApi::ForgotPassword, false},
    {"resetPassword", &SessionApi::ResetPassword, false},
    {"signOut", &SessionApi::SignOut, true},
    {"stepUp", &SessionApi::StepUp, true},
    {"password", &SessionApi::SetPassword, true},
    {"totp/start", &SessionApi::StartTotp, true},
    {"totp/confirm", &SessionApi::ConfirmTotp, true},
    {"totp/disable", &SessionApi::DisableTotp, true},
};

SessionApi::SessionApi(SessionClient& client, SessionOptions options)
    : client_(client),
      options_(std::move(options)),
      cookies_(options_.public_url.starts_with("https://")) {}

Task<http::HttpResponse> SessionApi::Handle(const http::HttpRequest& request, Loop& loop) {
  Call call{.request = request, .loop = loop, .cookie = cookies_.Session(request), .body = {}};
  const std::string_view path = std::string_view(request.path).substr(kSessionPath.size());
  if (request.method == "GET") {
    if (path == "session") co_return co_await Show(call);
    if (path == "site") co_return co_await ShowSite(call);
    if (path == "oidc/start") co_return co_await StartOidc(call);
    if (path == "oidc/callback") co_return co_await FinishOidc(call);
    if (const FormPage* page = FindFormPage(path)) {
      const std::string secret = call.Parameter(page->secret);
      if (options_.web && page->web_path != nullptr) co_return Redirect(WebAddress(*page, secret));
      co_return RenderFormPage(*page, secret);
    }
  }
  if (request.method == "POST") co_return co_await Post(call);
  co_return Refuse(grpc::StatusCode::NOT_FOUND, "NOT_FOUND", "There is no such page.");
}

Task<http::HttpResponse> SessionApi::Post(const Call& given) {
  const http::HttpRequest& request = given.request;
  const std::string_view path = std::string_view(request.path).substr(kSessionPath.size());
  const auto* route = std::ranges::find(kPosts, path, &Route::path);
  if (route == std::end(kPosts)) {
    co_return Refuse(grpc::StatusCode::NOT_FOUND, "NOT_FOUND", "There is no such page.");
  }
  // Applies to sign-ins, too: another site must not sign a visitor in with an account of its
  // choice.
  if (!IsSameOrigin(request, options_.public_url)) {
    co_return Refuse(grpc::StatusCode::PERMISSION_DENIED, "CROSS_SITE_REQUEST",
                     "The request comes from another site's page.");
  }
  Call call{.request = request, .loop = given.loop, .cookie = given.cookie, .body = {}};
  if (request.header("content-type").starts_with(kFormType)) call.page = FindFormPage(path);
  if (call.page == nullptr && !request.header("content-type").starts_with("application/json")) {
    co_return Refuse(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_BODY",
                     "The body must be JSON, with Content-Type: application/json.");
  }
  if (call.page == nullptr) {
    auto body = json::Document::Parse(request.body.empty() ? "{}" : request.body);
    if (!body || !body->root().is_object()) {
      co_return Refuse(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_BODY",
                       "The body must be a JSON object.");
    }
    call.body = std::move(*body);
  }
  if (route->signed_in) {
    v1::ResolveRequest resolve;
    resolve.set_cookie(call.cookie);
    call.Fill(*resolve.mutable_client());
    const auto holder = co_await client_.Resolve(call.loop, std::move(resolve));
    if (!holder.status.ok()) co_return Failure(holder.status);
    if (!holder.response.has_identity()) {
      http::HttpResponse ended = Refuse(grpc::StatusCode::UNAUTHENTICATED, "SESSION_ENDED",
                                        "The session has ended: sign in again.");
      ended.headers.emplace_back("set-cookie", cookies_.EndSession());
      co_return ended;
    }
    if (!ConstantTimeEquals(Sha256(request.header("x-csrf-token")),
                            Sha256(holder.response.csrf_token()))) {
      co_return Refuse(grpc::StatusCode::PERMISSION_DENIED, "CSRF_TOKEN_REQUIRED",
                       "The header x-csrf-token must hold the session's token; load the page "
                       "again.");
    }
  }
  co_return co_await (this->*route->handler)(call);
}

void SessionApi::SetSession(const v1::NewSession& session, http::HttpResponse& response) const {
  const int64_t left_us = session.expire_time_us() - SystemClock::Get().WallUs();
  response.headers.emplace_back("set-cookie",
                                cookies_.SetSession(session.cookie(), left_us / 1'000'000));
}

http::HttpResponse SessionApi::SignedIn(const v1::NewSession& session) const {
  http::HttpResponse response = Json(200, R"({"state":"SIGNED_IN"})");
  SetSession(session, response);
  return response;
}

http::HttpResponse SessionApi::Answer(const Call& call, const grpc::Status& status,
                                      const v1::NewSession* session,
                                      const std::string& challenge) const {
  if (call.page == nullptr) {
    if (!status.ok()) return Failure(status);
    if (session != nullptr) return SignedIn(*session);
    return Json(200,
                json::Writer().Text("state", "SECOND_STEP").Text("challenge", challenge).Done());
  }
  if (!status.ok()) {
    const RenderedStatus rendered = Render(status);
    return RenderFormPage(*call.page, call.Text(call.page->secret), rendered.http_status,
                          rendered.message);
  }
  if (session == nullptr) return RenderFormPage(*FindFormPage("secondStep"), challenge);
  http::HttpResponse response = Redirect("/");
  SetSession(*session, response);
  return response;
}

Task<http::HttpResponse> SessionApi::SignIn(const Call& call) {
  v1::SignInRequest request;
  request.set_email(call.Text("email"));
  request.set_password(call.Text("password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignIn, std::move(request));
  co_return AnswerOf(call, answer);
}

Task<http::HttpResponse> SessionApi::SecondStep(const Call& call) {
  v1::SignInSecondStepRequest request;
  request.set_challenge(call.Text("challenge"));
  request.set_code(call.Text("code"));
  request.set_recovery_code(call.Text("recovery_code"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignInSecondStep, std::move(request));
  co_return Answer(call, answer.status, &answer.response.session(), "");
}

Task<http::HttpResponse> SessionApi::Link(const Call& call) {
  v1::SignInByLinkRequest request;
  request.set_token(call.Text("token"));
  request.set_new_password(call.Text("new_password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignInByLink, std::move(request));
  co_return AnswerOf(call, answer);
}

Task<http::HttpResponse> SessionApi::Invitation(const Call& call) {
  v1::SignInByInvitationRequest request;
  request.set_token(call.Text("token"));
  request.set_display_name(call.Text("display_name"));
  request.set_password(call.Text("password"));
  call.Fill(*request.mutable_client());
  const auto answer =
      co_await client_.Call(call.loop, &Stub::SignInByInvitation, std::move(request));
  co_return Answer(call, answer.status, &answer.response.session(), "");
}

Task<http::HttpResponse> SessionApi::ForgotPassword(const Call& call) {
  v1::RequestPasswordResetRequest request;
  request.set_email(call.Text("email"));
  call.Fill(*request.mutable_client());
  const auto answer =
      co_await client_.Call(call.loop, &Stub::RequestPasswordReset, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return Json(200, R"({"state":"REQUESTED"})");
}

Task<http::HttpResponse> SessionApi::ResetPassword(const Call& call) {
  v1::ResetPasswordRequest request;
  request.set_token(call.Text("token"));
  request.set_new_password(call.Text("new_password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::ResetPassword, std::move(request));
  co_return AnswerOf(call, answer);
}

}  // namespace tollgate::dashboard
