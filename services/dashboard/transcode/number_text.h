// Converts numbers and bools from text: JSON's forms, and those of paths and queries, which follow
// Go's strconv as in grpc-gateway.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate::transcode {

// Converts a JSON number with an integral value ("5", "5.0", "1e2") to digits with an optional "-".
std::optional<std::string> IntegralText(std::string_view number);
// Whether the text is a JSON number, as a string may hold for an integer.
bool IsJsonNumber(std::string_view text);

// Parses "-5" and the like within the range of T. Signs as in Go: "+5" is allowed, but unsigned
// types allow none.
template <typename T>
std::optional<T> ParseInteger(std::string_view text);
// Parses 1 t T TRUE true True 0 f F FALSE false False.
std::optional<bool> ParseBool(std::string_view text);

}  // namespace tollgate::transcode
