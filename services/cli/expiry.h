#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tollgate::cli {

// Parses the expiry of a key into Unix microseconds: "30d", "12h" or "45m" from now, "2027-01-31"
// (00:00 UTC) or "2027-01-31T12:00:00Z". "never" is 0. nullopt if the text has another form or is
// in the past.
std::optional<int64_t> ParseExpiry(const std::string& text, int64_t now_us);

// Parses "30d", "12h" or "45m" into microseconds.
std::optional<int64_t> ParseSpan(const std::string& text);

}  // namespace tollgate::cli
