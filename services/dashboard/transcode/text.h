// Bytes, names and escapes of the admin API's JSON, paths and queries.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate::transcode {

// Both alphabets, padding optional, bits that are left over ignored.
std::optional<std::string> ParseBytes(std::string_view text);

// "displayName" as "display_name". Nothing if a path is not made of camel-case names.
std::optional<std::string> SnakeCasePath(std::string_view camel);
// "display_name" as "displayName". Nothing if it does not convert back.
std::optional<std::string> CamelCasePath(std::string_view snake);

// Replaces %XX, and "+" by a space if plus_is_space. Fails with the malformed sequence.
struct Unescaped {
  std::string text;
  std::string malformed;  // "%zz"; empty if all is well
};
Unescaped PercentDecode(std::string_view text, bool plus_is_space);

// As Go's %q does: in double quotes, with escapes for what is not printable ASCII or UTF-8.
std::string GoQuoted(std::string_view text);

}  // namespace tollgate::transcode
