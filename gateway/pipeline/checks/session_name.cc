#include "gateway/pipeline/checks/session_name.h"

#include <array>

namespace tollgate::gateway {
namespace {

bool IsName(std::string_view text) { return !text.empty() && text.size() <= kMaxSessionName; }

}  // namespace

std::string SessionNameOf(json::Value body) {
  constexpr std::string_view kMembers[] = {"session_id", "prompt_cache_key", "user", "metadata",
                                           "safety_identifier"};
  std::array<json::Value, std::size(kMembers)> found;
  for (const json::Value member : body) {  // one pass
    for (size_t i = 0; i < std::size(kMembers); ++i) {
      if (member.KeyEquals(kMembers[i])) found[i] = member;
    }
  }
  for (json::Value value : found) {
    if (value.is_object()) value = value.Find("user_id");
    if (!value.is_string() || !IsName(value.raw_string())) continue;
    if (std::string name = value.string(); IsName(name)) return name;
  }
  return {};
}

std::string_view SessionNameOf(const HttpRequest& request) {
  for (const std::string_view name : {"x-session-id", "x-session-affinity"}) {
    if (const std::string_view value = request.header(name); IsName(value)) return value;
  }
  return {};
}

}  // namespace tollgate::gateway
