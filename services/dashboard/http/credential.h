// Who makes a request of the admin API.
#pragma once

#include <optional>
#include <string>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "services/dashboard/http/login_token.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::dashboard {

struct Credential {
  common::v1::Identity identity;
  // Of a session's cookie, which a browser sends by itself: what the header x-csrf-token must hold.
  // Empty: a bearer token.
  std::string csrf_token;
};

class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // The credential of the request's cookie or bearer token. Nothing: it has none that is valid.
  // An error: who it is cannot be found out now, or the address guesses tokens (kRateLimited).
  // Thread-safe; runs on the given loop, that of the request, which outlives the task.
  virtual Task<Result<std::optional<Credential>>> Resolve(const http::HttpRequest& request,
                                                          Loop& loop) = 0;
};

// The configured login token, which has the rights of the operator's command line.
class LoginTokenSource : public CredentialSource {
 public:
  explicit LoginTokenSource(LoginToken& token) : token_(token) {}
  Task<Result<std::optional<Credential>>> Resolve(const http::HttpRequest& request,
                                                  Loop& loop) override;

 private:
  LoginToken& token_;
};

}  // namespace tollgate::dashboard
