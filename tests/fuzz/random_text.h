// Text as UTF-16 units, as in JSON escapes: surrogate pairs can be split.
#pragma once

#include <string>
#include <string_view>

#include "tests/fuzz/random.h"

namespace tollgate::fuzz {

// Any Unicode, control characters, quotes and backslashes; optionally with lone surrogates.
std::u16string RandomText(Random& random, size_t max_units, bool lone_halves);
// The text of a JSON object: nested, with escapes and Unicode in its strings, large numbers.
std::u16string RandomObject(Random& random);

// A lone surrogate becomes U+FFFD.
std::string ToUtf8(std::u16string_view units);
// utf8 must be valid.
std::u16string ToUtf16(std::string_view utf8);
// As the inside of a JSON string literal, each character randomly raw or escaped.
std::string Escape(Random& random, std::u16string_view units, size_t escaped_percent);

inline bool IsHigh(char16_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
inline bool IsLow(char16_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace tollgate::fuzz
