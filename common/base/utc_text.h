// Formats and parses points in time as RFC 3339, in UTC. Other date formats (HTTP, mail,
// certificates) are handled where they occur.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

enum class UtcPrecision {
  kSeconds,       // "2026-02-01T08:30:00Z"; a fraction is dropped
  kMicroseconds,  // "2026-02-01T08:30:00.000123Z"; always six decimals
  kShortest,      // six decimals if they are not all zero, otherwise none
};

// wall_us: microseconds since the Unix epoch.
std::string UtcText(int64_t wall_us, UtcPrecision precision = UtcPrecision::kShortest);
// "2026-02-01". day: days since the Unix epoch.
std::string UtcDateText(int64_t day);
// "2026-02". month: YYYYMM, as UtcMonth of common/base/clock.h returns it.
std::string UtcMonthText(int32_t month);

// The parsers return microseconds since the Unix epoch, or nothing if the text does not match.

// A date (its first moment) or an RFC 3339 time with any offset: "2026-02-01",
// "2026-02-01T09:30:00.5+01:00". A fraction finer than a microsecond is rounded up, so that
// "before" and "not before" give the same result for times that are whole microseconds.
std::optional<int64_t> ParseUtc(std::string_view text);
// Only a date: "2026-02-01".
std::optional<int64_t> ParseUtcDate(std::string_view text);
// Only the form "2026-02-01T08:30:00Z", without leap seconds.
std::optional<int64_t> ParseUtcSecond(std::string_view text);

}  // namespace tollgate
