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
// Whether the text is valid UTF-8 in which a reader sees every character: no control (C0, C1), no
// bidirectional or other format character (but the joiners of scripts and emoji), no line or
// paragraph separator. For names, which people compare and terminals print.
bool IsVisibleText(std::string_view text);
// Replaces each character that IsVisibleText refuses by the substitute.
std::string WithoutInvisible(std::string_view text, char substitute);

// The most likely candidate for a misspelled name; empty if none is close.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tollgate
