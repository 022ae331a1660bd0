#include "services/dashboard/session/session_api.h"

#include <optional>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/json/json.h"
#include "common/json/writer.h"
#include "services/dashboard/http/page.h"
#include "services/dashboard/http/same_origin.h"
#include "services/dashboard/session/session_errors.h"

namespace tollgate::dashboard {

namespace v1 = auth::v1;
using Stub = SessionClient::Stub;

// One request, with its body read.
struct SessionApi::Call {
  const http::HttpRequest& request;
  Loop& loop;
  std::string cookie;
  std::optional<json::Document> body;

  // "" when the body has no such text.
  std::string Text(const char* name) const {
    if (!body) return "";
    const json::Value value = body->root().Find(name);
    return value && value.is_string() ? value.string() : "";
  }
  void Fill(v1::Client& client) const {
    client.set_address(request.peer_address);
    client.set_user_agent(std::string(request.header("user-agent").substr(0, 200)));
    client.set_cookie(cookie);
  }
};

namespace {

http::HttpResponse Json(int status, std::string body) {
  http::HttpResponse response{.status = status, .body = std::move(body)};
  response.headers.emplace_back("content-type", "application/json");
  AddSecurityHeaders(response.headers);
  return response;
}

http::HttpResponse Failure(const grpc::Status& status) {
  const RenderedStatus rendered = Render(status);
  http::HttpResponse response = Json(rendered.http_status, rendered.body);
  if (rendered.retry_after_seconds > 0) {
    response.headers.emplace_back("retry-after", std::to_string(rendered.retry_after_seconds));
  }
  return response;
}

http::HttpResponse Refuse(grpc::StatusCode code, const char* reason, const char* message) {
  return Failure(MakeStatus(code, reason, message));
}

// To a page of the dashboard. 303: the browser asks with GET.
http::HttpResponse Redirect(std::string to) {
  http::HttpResponse response{.status = 303};
  response.headers.emplace_back("location", std::move(to));
  AddSecurityHeaders(response.headers);
  return response;
}

// Where the page says what went wrong, or asks for the second step. Behind "#", so that no server
// and no log gets to see it.
std::string SignInPage(const std::string& what) { return "/#/sign-in/" + what; }

std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      std::string hex(text.substr(i + 1, 2));
      for (char& c : hex) c = c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c;
      if (const auto byte = HexDecode(hex)) {
        out += *byte;
        i += 2;
        continue;
      }
    }
    out += text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

// The first value of a query parameter; empty: there is none.
std::string Parameter(const http::HttpRequest& request, std::string_view name) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == name) {
      return Decoded(pair.substr(std::min(equals + 1, pair.size())));
    }
  }
  return "";
}

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

const SessionApi::Route SessionApi::kPosts[] = {
    {"signIn", &SessionApi::SignIn, false},
    {"secondStep", &SessionApi::SecondStep, false},
    {"link", &SessionApi::Link, false},
    {"invitation", &SessionApi::Invitation, false},
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
    if (path == "link") co_return co_await FollowLink(call);
    if (path == "oidc/start") co_return co_await StartOidc(call);
    if (path == "oidc/callback") co_return co_await FinishOidc(call);
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
  // Also for a sign-in: another site must not sign a visitor in as a person of its choice.
  if (!IsSameOrigin(request, options_.public_url)) {
    co_return Refuse(grpc::StatusCode::PERMISSION_DENIED, "CROSS_SITE_REQUEST",
                     "The request comes from another site's page.");
  }
  if (!request.header("content-type").starts_with("application/json")) {
    co_return Refuse(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_BODY",
                     "The body must be JSON, with Content-Type: application/json.");
  }
  Call call{.request = request, .loop = given.loop, .cookie = given.cookie, .body = {}};
  auto body = json::Document::Parse(request.body.empty() ? "{}" : request.body);
  if (!body || !body->root().is_object()) {
    co_return Refuse(grpc::StatusCode::INVALID_ARGUMENT, "INVALID_BODY",
                     "The body must be a JSON object.");
  }
  call.body = std::move(*body);
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

Task<http::HttpResponse> SessionApi::SignIn(const Call& call) {
  v1::SignInRequest request;
  request.set_email(call.Text("email"));
  request.set_password(call.Text("password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignIn, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  if (answer.response.has_session()) co_return SignedIn(answer.response.session());
  co_return Json(200, json::Writer()
                          .Text("state", "SECOND_STEP")
                          .Text("challenge", answer.response.challenge())
                          .Done());
}

Task<http::HttpResponse> SessionApi::SecondStep(const Call& call) {
  v1::SignInSecondStepRequest request;
  request.set_challenge(call.Text("challenge"));
  request.set_code(call.Text("code"));
  request.set_recovery_code(call.Text("recovery_code"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignInSecondStep, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return SignedIn(answer.response.session());
}

Task<http::HttpResponse> SessionApi::Link(const Call& call) {
  v1::SignInByLinkRequest request;
  request.set_token(call.Text("token"));
  request.set_new_password(call.Text("new_password"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignInByLink, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  if (answer.response.has_session()) co_return SignedIn(answer.response.session());
  co_return Json(200, json::Writer()
                          .Text("state", "SECOND_STEP")
                          .Text("challenge", answer.response.challenge())
                          .Done());
}

Task<http::HttpResponse> SessionApi::FollowLink(const Call& call) {
  v1::SignInByLinkRequest request;
  request.set_token(Parameter(call.request, "token"));
  call.Fill(*request.mutable_client());
  const auto answer = co_await client_.Call(call.loop, &Stub::SignInByLink, std::move(request));
  if (!answer.status.ok()) co_return Redirect(SignInPage(ReasonOf(answer.status)));
  if (!answer.response.has_session()) {
    co_return Redirect(SignInPage("second-step/" + answer.response.challenge()));
  }
  http::HttpResponse response = Redirect("/");
  SetSession(answer.response.session(), response);
  co_return response;
}

Task<http::HttpResponse> SessionApi::Invitation(const Call& call) {
  v1::SignInByInvitationRequest request;
  request.set_token(call.Text("token"));
  request.set_display_name(call.Text("display_name"));
  request.set_password(call.Text("password"));
  call.Fill(*request.mutable_client());
  const auto answer =
      co_await client_.Call(call.loop, &Stub::SignInByInvitation, std::move(request));
  if (!answer.status.ok()) co_return Failure(answer.status);
  co_return SignedIn(answer.response.session());
}

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

std::string SessionApi::RedirectUri(const http::HttpRequest& request) const {
  std::string base = options_.public_url.empty() ? "http://" + std::string(request.header("host"))
                                                 : options_.public_url;
  if (base.ends_with('/')) base.pop_back();
  return base + std::string(kSessionPath) + "oidc/callback";
}

Task<http::HttpResponse> SessionApi::StartOidc(const Call& call) {
  v1::StartOidcRequest request;
  request.set_redirect_uri(RedirectUri(call.request));
  request.set_return_path(Parameter(call.request, "return_path"));
  const auto answer =
      co_await client_.CallProvider(call.loop, &Stub::StartOidc, std::move(request));
  if (!answer.status.ok()) co_return Redirect(SignInPage(ReasonOf(answer.status)));
  http::HttpResponse response = Redirect(answer.response.url());
  response.headers.emplace_back("set-cookie", cookies_.SetFlow(answer.response.flow()));
  co_return response;
}

Task<http::HttpResponse> SessionApi::FinishOidc(const Call& call) {
  v1::FinishOidcRequest request;
  request.set_flow(cookies_.Flow(call.request));
  request.set_state(Parameter(call.request, "state"));
  request.set_code(Parameter(call.request, "code"));
  request.set_iss(Parameter(call.request, "iss"));
  request.set_redirect_uri(RedirectUri(call.request));
  call.Fill(*request.mutable_client());
  const auto answer =
      co_await client_.CallProvider(call.loop, &Stub::FinishOidc, std::move(request));
  http::HttpResponse response = Redirect(answer.status.ok() ? answer.response.return_path()
                                                            : SignInPage(ReasonOf(answer.status)));
  response.headers.emplace_back("set-cookie", cookies_.EndFlow());
  if (answer.status.ok()) SetSession(answer.response.session(), response);
  co_return response;
}

}  // namespace tollgate::dashboard
