// Small text tools without a better home.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate {

// Length of the UTF-8 sequence at the start of text (1-4), or 0 when there is none: empty,
// truncated, overlong, a surrogate, or above U+10FFFF.
size_t Utf8SequenceLength(std::string_view text);
bool IsValidUtf8(std::string_view text);

// The candidate that a person most likely meant, or empty when none is close.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tollgate
