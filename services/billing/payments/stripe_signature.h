// Signatures of Stripe's webhooks: "t=TIME,v1=HEX[,v1=HEX…]", HMAC-SHA256 over "TIME.BODY".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::billing::payments {

inline constexpr int64_t kSignatureToleranceUs = 300'000'000;

// Whether the header signs exactly these bytes with one of the secrets (two during a secret
// rotation), at a time within the tolerance. Compares in constant time.
bool SignatureIsValid(std::string_view header, std::string_view body,
                      const std::vector<std::string>& secrets, int64_t now_us);

}  // namespace tollgate::billing::payments
