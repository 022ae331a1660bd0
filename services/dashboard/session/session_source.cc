#include "common/admin/failure.h"
#include "services/dashboard/session/session_api.h"

namespace tollgate::dashboard {
namespace {

constexpr std::string_view kBearer = "Bearer ";
// Prefixes of access tokens of people and of secrets of support sessions.
constexpr std::string_view kTokenPrefix = "tgp_", kSupportPrefix = "tgs_";
constexpr size_t kMaxSecretBytes = 200;

}  // namespace

SessionSource::SessionSource(SessionClient& client, const SessionOptions& options,
                             CredentialSource& next)
    : client_(client), cookies_(options.public_url.starts_with("https://")), next_(next) {}

Task<Result<std::optional<Credential>>> SessionSource::Resolve(const http::HttpRequest& request,
                                                               Loop& loop) {
  const std::string_view header = request.header("authorization");
  auth::v1::ResolveRequest resolve;
  if (!header.empty()) {
    // With a bearer token the cookie is ignored: the CSRF check applies to cookies only.
    const std::string_view token =
        header.starts_with(kBearer) ? header.substr(kBearer.size()) : std::string_view();
    const bool support = token.starts_with(kSupportPrefix);
    if (!support && !token.starts_with(kTokenPrefix)) {
      co_return co_await next_.Resolve(request, loop);
    }
    resolve.set_token(std::string(token));
    // Written to the audit log before the request is answered.
    if (support) resolve.set_use(request.method + " " + request.path);
  } else {
    resolve.set_cookie(cookies_.Session(request));
  }
  const std::string& secret = resolve.token().empty() ? resolve.cookie() : resolve.token();
  if (secret.empty() || secret.size() > kMaxSecretBytes) co_return std::optional<Credential>();
  resolve.mutable_client()->set_address(request.peer_address);
  auto answer = co_await client_.Resolve(loop, std::move(resolve));
  if (!answer.status.ok()) {
    co_return Unavailable("sessions cannot be looked up: " + answer.status.error_message());
  }
  if (!answer.response.has_identity()) co_return std::optional<Credential>();
  Credential credential;
  credential.identity = std::move(*answer.response.mutable_identity());
  credential.csrf_token = answer.response.csrf_token();
  co_return std::optional(std::move(credential));
}

}  // namespace tollgate::dashboard
