// JSON API under /session/v1/ (decision 63), by which people sign in at the dashboard. README.md
// lists bodies and answers. Errors have the same form as the admin API's. Links open a page with a
// form (form_page.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/http/exchange.h"
#include "services/dashboard/http/credential.h"
#include "services/dashboard/session/cookies.h"
#include "services/dashboard/session/session_client.h"

namespace tollgate::dashboard {

inline constexpr std::string_view kSessionPath = "/session/v1/";

struct SessionOptions {
  std::string public_url;  // the dashboard's address; see IsSameOrigin
  std::string base_url;    // address of the public API
  bool web = false;        // the web application exists, so links lead to its pages
};

class SessionApi {
 public:
  // client must outlive the SessionApi.
  SessionApi(SessionClient& client, SessionOptions options);

  Task<http::HttpResponse> Handle(const http::HttpRequest& request, Loop& loop);

 private:
  struct Call;
  using Handler = Task<http::HttpResponse> (SessionApi::*)(const Call&);
  struct Route {
    std::string_view path;  // below kSessionPath
    Handler handler;
    // Requires a session and its CSRF token.
    bool signed_in;
  };
  static const Route kPosts[];

  Task<http::HttpResponse> SignIn(const Call& call);
  Task<http::HttpResponse> SecondStep(const Call& call);
  Task<http::HttpResponse> Link(const Call& call);
  Task<http::HttpResponse> Invitation(const Call& call);
  Task<http::HttpResponse> ForgotPassword(const Call& call);
  Task<http::HttpResponse> ResetPassword(const Call& call);
  Task<http::HttpResponse> SignOut(const Call& call);
  Task<http::HttpResponse> StepUp(const Call& call);
  Task<http::HttpResponse> SetPassword(const Call& call);
  Task<http::HttpResponse> StartTotp(const Call& call);
  Task<http::HttpResponse> ConfirmTotp(const Call& call);
  Task<http::HttpResponse> DisableTotp(const Call& call);
  // GET requests.
  Task<http::HttpResponse> Show(const Call& call);
  Task<http::HttpResponse> ShowSite(const Call& call);
  Task<http::HttpResponse> StartOidc(const Call& call);
  Task<http::HttpResponse> FinishOidc(const Call& call);

  Task<http::HttpResponse> Post(const Call& call);
  // Responds with JSON, or with a page after a page's form. session: null if a second step is
  // required.
  http::HttpResponse Answer(const Call& call, const grpc::Status& status,
                            const auth::v1::NewSession* session,
                            const std::string& challenge) const;
  template <typename Response>
  http::HttpResponse AnswerOf(const Call& call, const SessionAnswer<Response>& answer) const {
    return Answer(call, answer.status,
                  answer.response.has_session() ? &answer.response.session() : nullptr,
                  answer.response.challenge());
  }
  http::HttpResponse SignedIn(const auth::v1::NewSession& session) const;
  void SetSession(const auth::v1::NewSession& session, http::HttpResponse& response) const;
  std::string RedirectUri(const http::HttpRequest& request) const;

  SessionClient& client_;
  const SessionOptions options_;
  const Cookies cookies_;
};

// Resolves the cookie of a session, the access token of a person or the secret of a support
// session. Passes other bearer tokens to `next`.
class SessionSource : public CredentialSource {
 public:
  SessionSource(SessionClient& client, const SessionOptions& options, CredentialSource& next);
  Task<Result<std::optional<Credential>>> Resolve(const http::HttpRequest& request,
                                                  Loop& loop) override;

 private:
  SessionClient& client_;
  const Cookies cookies_;
  CredentialSource& next_;
};

}  // namespace tollgate::dashboard
