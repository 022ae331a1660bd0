// Steps of the parsers of numbers and times.
#pragma once

#include <string_view>

#include "common/base/ascii.h"

namespace tollgate::transcode {

// Removes the digits at the beginning; false if there are none.
inline bool SkipDigits(std::string_view& text) {
  const size_t before = text.size();
  while (!text.empty() && IsDigit(text[0])) text.remove_prefix(1);
  return text.size() != before;
}

// Removes the first character if it is one of these.
inline bool Skip(std::string_view& text, std::string_view chars) {
  if (text.empty() || chars.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace tollgate::transcode
