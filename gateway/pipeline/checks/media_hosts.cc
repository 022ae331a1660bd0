#include "gateway/pipeline/checks/media_hosts.h"

#include <algorithm>

#include "common/base/ascii.h"
#include "common/base/public_address.h"

namespace tollgate::gateway {

namespace {

constexpr std::string_view kPublic = "*";
constexpr std::string_view kAnyName = "*.";

bool IsNameCharacter(char c) { return IsAlnum(c) || c == '.' || c == '-' || c == '_'; }
bool IsAddressCharacter(char c) { return HexValue(c) >= 0 || c == '.' || c == ':'; }

}  // namespace

std::optional<std::string> ReadMediaHostRule(std::string_view text) {
  std::string rule(text);
  for (char& c : rule) {
    if (IsUpper(c)) c = static_cast<char>(c | 0x20);
  }
  std::string_view host = rule;
  if (host == kPublic) return rule;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    return std::all_of(host.begin(), host.end(), IsAddressCharacter) ? std::optional(rule)
                                                                     : std::nullopt;
  }
  if (host.starts_with(kAnyName)) host.remove_prefix(kAnyName.size());
  const bool good = !host.empty() && host.front() != '.' && host.back() != '.' &&
                    std::all_of(host.begin(), host.end(), IsNameCharacter);
  return good ? std::optional(rule) : std::nullopt;
}

bool IsMediaHostAllowed(const std::vector<std::string>& rules, std::string_view host) {
  if (rules.empty()) return IsPublicHost(host);
  return std::any_of(rules.begin(), rules.end(), [host](std::string_view rule) {
    if (rule == kPublic) return IsPublicHost(host);
    if (!rule.starts_with(kAnyName)) return host == rule;
    const std::string_view end = rule.substr(1);  // includes the dot
    return host.size() > end.size() && host.ends_with(end);
  });
}

}  // namespace tollgate::gateway
