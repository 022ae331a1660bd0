// SessionApi: sign-in with an OpenID Connect provider.
#include "services/dashboard/session/session_call.h"

namespace tollgate::dashboard {

namespace v1 = auth::v1;
using Stub = SessionClient::Stub;

std::string SessionApi::RedirectUri(const http::HttpRequest& request) const {
  std::string base = options_.public_url.empty() ? "http://" + std::string(request.header("host"))
                                                 : options_.public_url;
  if (base.ends_with('/')) base.pop_back();
  return base + std::string(kSessionPath) + "oidc/callback";
}

Task<http::HttpResponse> SessionApi::StartOidc(const Call& call) {
  v1::StartOidcRequest request;
  request.set_redirect_uri(RedirectUri(call.request));
  request.set_return_path(call.Parameter("return_path"));
  request.set_step_up(call.Parameter("step_up") == "1");
  call.Fill(*request.mutable_client());
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
  request.set_state(call.Parameter("state"));
  request.set_code(call.Parameter("code"));
  request.set_iss(call.Parameter("iss"));
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
