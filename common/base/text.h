// UTF-8 checks on whole strings, and the nearest match for a misspelled name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate {

// Rejects truncated and overlong sequences, surrogates, and code points above U+10FFFF.
bool IsValidUtf8(std::string_view text);
// The start of the text, at most max_bytes long and cut between characters. Each byte that is not
// part of valid UTF-8 is replaced by '?'.
std::string ToValidUtf8(std::string_view text, size_t max_bytes);

// The most likely candidate for a misspelled name; empty if none is close.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tollgate
