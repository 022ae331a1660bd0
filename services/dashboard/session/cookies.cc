#include "services/dashboard/session/cookies.h"

#include <algorithm>

namespace tollgate::dashboard {

namespace {

// Matches "127.0.0.1:8081", "[::1]:8081", "localhost" and the like.
bool IsThisMachine(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("[::1]") || address == "localhost" ||
         address.starts_with("localhost:") || address.starts_with("localhost/");
}

}  // namespace

std::string CookieRisk(std::string_view listen, std::string_view public_url) {
  constexpr std::string_view kHttps = "https://", kHttp = "http://";
  if (public_url.starts_with(kHttps)) return "";
  const bool far_url =
      public_url.starts_with(kHttp) && !IsThisMachine(public_url.substr(kHttp.size()));
  if (IsThisMachine(listen) && !far_url) return "";
  return "the dashboard is reachable from other machines and dashboard.public_url is not https: "
         "session cookies are sent without Secure, and anyone who listens on the network can take "
         "over sessions; put TLS in front of it and set dashboard.public_url to its https address";
}

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
      // Takes the first one. Browsers send a cookie with a longer path first, which another host
      // might have set; the prefix "__Host-" prevents that.
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
  // SameSite=Lax, because the provider's redirect comes from another site. Writes also need the
  // CSRF token.
  return Name(base) + "=" + std::string(value) +
         "; Path=/; HttpOnly; SameSite=Lax; Max-Age=" + std::to_string(max_age_seconds) +
         (https_ ? "; Secure" : "");
}

}  // namespace tollgate::dashboard
