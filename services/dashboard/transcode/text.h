// Converts bytes, names and escapes in JSON, paths and queries of the admin API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate::transcode {

// Decodes base64 in either alphabet. Padding is optional, and excess bits are ignored.
std::optional<std::string> ParseBytes(std::string_view text);

// Converts "displayName" to "display_name". nullopt if a path does not consist of camel-case names.
std::optional<std::string> SnakeCasePath(std::string_view camel);
// Converts "display_name" to "displayName". nullopt if the result does not convert back.
std::optional<std::string> CamelCasePath(std::string_view snake);

// Decodes %XX, and "+" to a space if plus_is_space. Fails with the malformed sequence.
struct Unescaped {
  std::string text;
  std::string malformed;  // "%zz"; empty on success
};
Unescaped PercentDecode(std::string_view text, bool plus_is_space);

// Quotes like Go's %q: in double quotes, with escapes for text that is not printable ASCII or
// UTF-8.
std::string GoQuoted(std::string_view text);

}  // namespace tollgate::transcode
