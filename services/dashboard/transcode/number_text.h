// Numbers and bools as texts, and back: JSON's, and those of paths and queries, in the forms of
// Go's strconv, which a grpc-gateway uses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tollgate::transcode {

// A JSON number with an integral value ("5", "5.0", "1e2") as digits with an optional "-".
std::optional<std::string> IntegralText(std::string_view number);
// Whether the text is a JSON number, as a string may hold it for an integer or a float.
bool IsJsonNumber(std::string_view text);

// "-5" and the like with the range of T; signs as in Go ("+5" is allowed, for unsigned T none).
template <typename T>
std::optional<T> ParseInteger(std::string_view text);
// Go's forms: "1.5", ".5", "inf", "-Infinity", "nan", "0x1p-2". Nothing on overflow.
template <typename T>
std::optional<T> ParseFloat(std::string_view text);
// A JSON number. Nothing on overflow.
template <typename T>
std::optional<T> NumberValue(std::string_view number);
// 1 t T TRUE true True 0 f F FALSE false False.
std::optional<bool> ParseBool(std::string_view text);

// Shortest digits that read back as the same number; an exponent only below 1e-6 and from 1e21.
std::string NumberText(double value);
std::string NumberText(float value);

}  // namespace tollgate::transcode
