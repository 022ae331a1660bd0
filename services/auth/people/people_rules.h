// Rules of people, roles, sessions and access tokens. Pure. See docs/design/people.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/admin/failure.h"
#include "common/admin/roles.h"

namespace tollgate::auth {

using admin::AdminResult;
using common::v1::Role;

// In lower case. INVALID_ARGUMENT for what cannot be an address: one @, no white space or control
// characters, at most 254 bytes.
AdminResult<std::string> NormalEmail(std::string_view text, std::string_view field);
// 10 to 256 bytes of UTF-8.
AdminResult<void> CheckPassword(std::string_view password, std::string_view email,
                                std::string_view field);
// At most 100 bytes of UTF-8 without control characters.
AdminResult<void> CheckDisplayName(std::string_view name, std::string_view field);
AdminResult<Role> ParseRole(std::string_view name, std::string_view field);

// The scopes of a token that a person with these roles makes: at least one role, none that the
// person has nowhere, and only workspaces that the person is a member of.
AdminResult<void> CheckScopes(const std::vector<std::string>& scopes,
                              const std::map<std::string, Role>& roles, bool platform_operator);

// An owner may give and take every role, an admin only those below admin.
bool MayManage(Role manager, Role role);

// How long a session lives.
struct SessionTimes {
  int64_t idle_us = int64_t{30} * 60 * 1'000'000;
  int64_t absolute_us = int64_t{12} * 3600 * 1'000'000;
};

// 256 random bits in base64url, of which only HashSecret is stored.
std::string NewSecret();
// 32 bytes. The secrets are random, so a plain hash gives nothing away.
std::string HashSecret(std::string_view secret);
// The CSRF token of a session: who cannot read the cookie cannot make it.
std::string CsrfToken(std::string_view cookie);

// Access tokens begin with it.
inline constexpr std::string_view kTokenPrefix = "tgp_";

// Ten codes of 50 bits: "abcde-fghij".
std::vector<std::string> NewRecoveryCodes();
// As people type it: without hyphens and spaces, in lower case.
std::string NormalRecoveryCode(std::string_view code);

// One rate limit of sign-ins: `burst` tries, then one each interval_us (GCRA). full_at_us is the
// stored state: when all tries are back.
struct TryLimit {
  int64_t interval_us = 0;
  int64_t burst = 0;
};
// 0, or the µs until the next try.
int64_t WaitForTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us);
int64_t AfterTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us);

}  // namespace tollgate::auth
