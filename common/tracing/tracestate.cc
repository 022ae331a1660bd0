#include "common/tracing/tracestate.h"

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate::tracing {
namespace {

constexpr size_t kMaxKeyBytes = 256;
constexpr size_t kMaxValueBytes = 256;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsKey(std::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes) return false;
  if (!IsLower(key[0]) && !IsDigit(key[0])) return false;
  return std::all_of(key.begin(), key.end(), [](char c) {
    return IsLower(c) || IsDigit(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
  });
}

// The value is trimmed, so it does not end in a space.
bool IsValue(std::string_view value) {
  if (value.empty() || value.size() > kMaxValueBytes) return false;
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

}  // namespace

std::string CleanTracestate(const std::vector<std::string_view>& values) {
  std::string clean;
  std::vector<std::string_view> keys;
  bool fits = true;
  for (std::string_view rest : values) {
    for (;;) {
      const size_t comma = rest.find(',');
      const std::string_view member = Trim(rest.substr(0, comma));
      if (!member.empty()) {  // empty members are allowed
        const size_t equals = member.find('=');
        if (equals == std::string_view::npos) return "";
        const std::string_view key = member.substr(0, equals);
        if (!IsKey(key) || !IsValue(member.substr(equals + 1))) return "";
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) return "";
        keys.push_back(key);
        if (keys.size() > kMaxTracestateMembers) return "";
        fits = fits && clean.size() + 1 + member.size() <= kMaxTracestateBytes;
        if (fits) {
          if (!clean.empty()) clean += ',';
          clean += member;
        }
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return clean;
}

}  // namespace tollgate::tracing
