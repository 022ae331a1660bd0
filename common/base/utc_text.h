// Points in time as text, in UTC and as RFC 3339 writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate {

// "2026-02-01T08:30:00Z" of microseconds since the epoch; with six decimals where they are not
// zero.
std::string UtcText(int64_t wall_us);
// "2026-02-01" of days since the epoch.
std::string UtcDateText(int64_t day);

// Microseconds since the epoch of "2026-02-01" (its first moment, UTC) or of an RFC 3339 time with
// any offset ("2026-02-01T09:30:00.5+01:00"). What is finer than a microsecond counts as the whole
// next one, so that "before" and "not before" mean the same for times that are whole. Empty when it
// is neither.
std::optional<int64_t> ParseUtc(std::string_view text);

}  // namespace tollgate
