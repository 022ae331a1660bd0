#include "services/dashboard/session/cookies.h"

#include <algorithm>

namespace tollgate::dashboard {

std::string Cookies::Name(std::string_view base) const {
  return (https_ ? "__Host-" : "") + std::string(base);
}

std::string Cookies::Find(const http::HttpRequest& request, std::string_view base) const {
  const std::string name = Name(base);
  for (const auto& [field, line] : request.headers) {
    if (field != "cookie") continue;
    std::string_view rest = line;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(';'), rest.size());
      std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      while (pair.starts_with(' ')) pair.remove_prefix(1);
      // The first one: a cookie for a longer path, which another host may have set, comes first,
      // but ours has the path / and "__Host-" keeps others out.
      if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') {
        return std::string(pair.substr(name.size() + 1));
      }
    }
  }
  return "";
}

std::string Cookies::Session(const http::HttpRequest& request) const {
  return Find(request, kSession);
}
std::string Cookies::Flow(const http::HttpRequest& request) const { return Find(request, kFlow); }

std::string Cookies::SetSession(std::string_view value, int64_t max_age_seconds) const {
  return Set(kSession, value, std::max<int64_t>(max_age_seconds, 0));
}

std::string Cookies::Set(std::string_view base, std::string_view value,
                         int64_t max_age_seconds) const {
  // Lax: the provider's redirect comes from its site. Changes want the CSRF token besides.
  return Name(base) + "=" + std::string(value) +
         "; Path=/; HttpOnly; SameSite=Lax; Max-Age=" + std::to_string(max_age_seconds) +
         (https_ ? "; Secure" : "");
}

}  // namespace tollgate::dashboard
