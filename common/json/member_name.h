// Member names in error messages.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tollgate::json {

// The key of a member may have any length and content. Errors show only keys of at most 64 bytes of
// [A-Za-z0-9_.-].
inline bool IsShown(std::string_view key) {
  return !key.empty() && key.size() <= 64 && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

// Returns "parent.key", or only the parent if the key is not shown.
inline std::string MemberName(std::string_view parent, std::string_view key) {
  std::string name(parent);
  if (!IsShown(key)) return name;
  name += '.';
  name += key;
  return name;
}

}  // namespace tollgate::json
