#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tollgate::cli {

// When a key ends, in Unix microseconds: "30d", "12h" or "45m" from now, "2027-01-31" (its first
// moment) or "2027-01-31T12:00:00Z", all UTC. "never" is 0. Empty when the text is none of them or
// lies in the past.
std::optional<int64_t> ParseExpiry(const std::string& text, int64_t now_us);

}  // namespace tollgate::cli
