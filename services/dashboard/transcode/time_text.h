// Converts times and durations from and to text: JSON's forms, and that of times in queries, which
// follows Go's time package as in grpc-gateway.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::transcode {

struct SecondsNanos {
  int64_t seconds = 0;
  int32_t nanos = 0;
};
// Parses RFC 3339 as Go does: "," as decimal point, any number of digits, years 0000 to 9999.
std::optional<SecondsNanos> ParseTimestamp(std::string_view text);
// Parses JSON's form: years 0001 to 9999, at most 9 digits after a ".".
std::optional<SecondsNanos> ParseJsonTimestamp(std::string_view text);
// Parses JSON's "1.5s", at most 315,576,000,000 seconds.
std::optional<SecondsNanos> ParseJsonDuration(std::string_view text);
// nullopt outside the range that JSON can represent.
std::optional<std::string> TimestampText(SecondsNanos value);
std::optional<std::string> DurationText(SecondsNanos value);

}  // namespace tollgate::transcode
