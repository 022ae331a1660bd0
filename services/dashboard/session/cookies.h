// Cookies of the dashboard: the session's, and that of a pending sign-in at a provider.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

class Cookies {
 public:
  // With https, cookies are Secure and have the prefix "__Host-". Without https that is impossible,
  // which is acceptable on this machine and in tests.
  explicit Cookies(bool https) : https_(https) {}

  // Value of the request's cookie; empty if it has none.
  std::string Session(const http::HttpRequest& request) const;
  std::string Flow(const http::HttpRequest& request) const;

  // Values of set-cookie headers. Cookie values are base64url.
  std::string SetSession(std::string_view value, int64_t max_age_seconds) const;
  std::string EndSession() const { return Set(kSession, "", 0); }
  std::string SetFlow(std::string_view value) const { return Set(kFlow, value, 600); }
  std::string EndFlow() const { return Set(kFlow, "", 0); }

 private:
  static constexpr std::string_view kSession = "tollgate";
  static constexpr std::string_view kFlow = "tollgate-flow";

  std::string Name(std::string_view base) const;
  std::string Find(const http::HttpRequest& request, std::string_view base) const;
  std::string Set(std::string_view base, std::string_view value, int64_t max_age_seconds) const;

  const bool https_;
};

// Why cookies are unsafe with this listen address and public URL; empty if they are safe.
std::string CookieRisk(std::string_view listen, std::string_view public_url);

}  // namespace tollgate::dashboard
