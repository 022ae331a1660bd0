// ID tokens of OpenID Connect: JSON Web Tokens signed with RS256 or ES256 (RFC 7519, 7518). The
// provider publishes the keys (RFC 7517). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace tollgate::people {

struct IdToken {
  std::string issuer;
  std::string subject;
  std::string nonce;
  std::string email;
  bool email_verified = false;
  std::string name;
  // When the person signed in at the provider, in seconds since the Unix epoch. Unset: the provider
  // does not say.
  std::optional<int64_t> auth_time;
};

struct IdTokenRules {
  std::string issuer;
  std::string audience;  // our client_id
  std::string nonce;
  int64_t now_us = 0;
};

// keys: the provider's JSON Web Key Set. Checks the signature, issuer, audience, authorized party,
// nonce and times, with a tolerance of one minute. The error is for logs.
BasicResult<IdToken, std::string> VerifyIdToken(std::string_view token, std::string_view keys,
                                                const IdTokenRules& rules);

// base64url without padding (RFC 7515).
std::string Base64Url(std::string_view bytes);

}  // namespace tollgate::people
