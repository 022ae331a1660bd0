// Parses whole numbers.
#pragma once

#include <charconv>
#include <string_view>

namespace tollgate {

// Whether all of `text` is a number that fits. Unsigned types take no "-"; none takes "+" or
// spaces.
template <typename Number>
bool ParseNumber(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace tollgate
