// One-time codes of authenticator apps: TOTP (RFC 6238) with HMAC-SHA-1, six digits and 30 seconds,
// the variant that all apps support. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::people {

inline constexpr size_t kTotpSecretBytes = 20;
inline constexpr int64_t kTotpStepUs = 30'000'000;

// Code of a time step (microseconds since the Unix epoch / kTotpStepUs).
std::string TotpCode(std::string_view secret, int64_t step);
// Time step of a valid code. Accepts the current step and those before and after it, because clocks
// differ. nullopt for a wrong code, and for a step up to last_step: a code works once.
std::optional<int64_t> MatchTotp(std::string_view secret, std::string_view code, int64_t now_us,
                                 int64_t last_step);

// RFC 4648 base32 without padding, the form in which apps accept secrets.
std::string Base32(std::string_view bytes);
// otpauth://totp/ISSUER:ACCOUNT?secret=…, for a QR code.
std::string TotpUri(std::string_view issuer, std::string_view account, std::string_view secret);

}  // namespace tollgate::people
