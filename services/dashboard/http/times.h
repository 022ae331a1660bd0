// Times as the admin API writes them: 2027-01-31T12:00:00Z, in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::dashboard {

// To the second.
std::string FormatTime(int64_t unix_us);
// Only that form, from 1970 to 9999. Microseconds since 1970.
std::optional<int64_t> ParseTime(std::string_view text);
// "2026-11" of 202611.
std::string FormatMonth(int32_t yyyymm);

}  // namespace tollgate::dashboard
