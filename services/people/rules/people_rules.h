// Rules for people, roles, sessions and access tokens. Pure. See docs/design/people.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/admin/failure.h"
#include "common/admin/roles.h"

namespace tollgate::people {

using admin::AdminResult;
using common::v1::Role;

// Converts to lower case. INVALID_ARGUMENT unless the text has exactly one @, no white space or
// control characters, and at most 254 bytes.
AdminResult<std::string> NormalEmail(std::string_view text, std::string_view field);
// 10 to 256 bytes of UTF-8.
AdminResult<void> CheckPassword(std::string_view password, std::string_view email,
                                std::string_view field);
// At most 100 bytes of visible text (common/base/text.h).
AdminResult<void> CheckDisplayName(std::string_view name, std::string_view field);
AdminResult<Role> ParseRole(std::string_view name, std::string_view field);

// Validates the scopes of a token: at least one role, only roles that the person has in some
// workspace, and only workspaces of which the person is a member.
AdminResult<void> CheckScopes(const std::vector<std::string>& scopes,
                              const std::map<std::string, Role>& roles, bool platform_operator);

// An owner may grant and revoke every role, an admin only those below admin.
bool MayManage(Role manager, Role role);

// How long a session lives.
struct SessionTimes {
  int64_t idle_us = int64_t{30} * 60 * 1'000'000;
  int64_t absolute_us = int64_t{12} * 3600 * 1'000'000;
};

// 256 random bits in base64url. Only HashSecret of it is stored.
std::string NewSecret();
// 32 bytes. The secrets are random, so a plain hash is enough.
std::string HashSecret(std::string_view secret);
// The CSRF token of a session. It cannot be computed without the cookie.
std::string CsrfToken(std::string_view cookie);

// Prefix of access tokens.
inline constexpr std::string_view kTokenPrefix = "tgp_";

// Ten codes of 50 bits each, as "abcde-fghij".
std::vector<std::string> NewRecoveryCodes();
// Removes hyphens and spaces, and converts to lower case.
std::string NormalRecoveryCode(std::string_view code);

// A rate limit of sign-ins: `burst` attempts, then one per interval_us (GCRA). The stored state
// full_at_us is the time when all attempts are available again.
struct TryLimit {
  int64_t interval_us = 0;
  int64_t burst = 0;
};
// Time until the next attempt in µs; 0: now.
int64_t WaitForTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us);
int64_t AfterTry(const TryLimit& limit, int64_t full_at_us, int64_t now_us);

}  // namespace tollgate::people
