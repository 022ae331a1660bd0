// Standard base64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

// bytes: at most 1 GiB.
std::string Base64Encode(std::string_view bytes);
// Strict: returns nullopt for a foreign character (white space included), wrong padding, or unused
// bits that are not zero.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace tollgate
