// Standard base64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

std::string Base64Encode(std::string_view bytes);
// Nothing when the text is not whole base64: a foreign character, missing padding, bits left over.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace tollgate
