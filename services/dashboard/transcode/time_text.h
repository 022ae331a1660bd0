// Times and durations as texts, and back: JSON's, and those of queries, in the forms of Go's time
// package, which a grpc-gateway uses.
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
// RFC 3339 as Go reads it: "," as decimal point, any number of digits, years 0000 to 9999.
std::optional<SecondsNanos> ParseTimestamp(std::string_view text);
// The same as JSON has it: years 0001 to 9999, at most 9 digits after a ".".
std::optional<SecondsNanos> ParseJsonTimestamp(std::string_view text);
// "1.5s" of JSON, at most 315,576,000,000 seconds.
std::optional<SecondsNanos> ParseJsonDuration(std::string_view text);
// Go's "1h30m", "-1.5s", "250ms", within 64-bit nanoseconds.
std::optional<SecondsNanos> ParseGoDuration(std::string_view text);
// Nothing if out of the range that JSON can hold.
std::optional<std::string> TimestampText(SecondsNanos value);
std::optional<std::string> DurationText(SecondsNanos value);

}  // namespace tollgate::transcode
