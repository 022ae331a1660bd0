// Identifies the caller of an admin API request.
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
  // Set for a session's cookie, which browsers send by themselves: the required value of the header
  // x-csrf-token. Empty for a bearer token.
  std::string csrf_token;
};

class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Returns the credential of the request's cookie or bearer token; nullopt if it has no valid one.
  // Fails if the caller cannot be identified now, or if the address is guessing tokens
  // (kRateLimited). Thread-safe. Runs on the given loop, which is the request's and outlives the
  // task.
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
