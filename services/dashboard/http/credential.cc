#include "services/dashboard/http/credential.h"

namespace tollgate::dashboard {

Task<Result<std::optional<Credential>>> LoginTokenSource::Resolve(const http::HttpRequest& request,
                                                                  Loop&) {
  const LoginToken::Answer answer = token_.Check(request);
  if (answer.verdict == LoginToken::Verdict::kThrottled) {
    co_return Fail{Error{.id = ErrorId::kRateLimited,
                         .message = "Too many logins with a wrong token.",
                         .retry_after_ms = answer.wait_ms}};
  }
  if (answer.verdict != LoginToken::Verdict::kAccepted) co_return std::optional<Credential>();
  Credential credential;
  credential.identity.set_actor("token:login");
  credential.identity.set_display_name("login token");
  credential.identity.set_platform_operator(true);
  credential.identity.set_installation(true);
  credential.identity.set_by_token(true);
  co_return std::optional(std::move(credential));
}

}  // namespace tollgate::dashboard
