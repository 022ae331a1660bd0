// The cookies of the dashboard: the session's, and the one of a sign-in at a provider under way.
#pragma once

#include <string>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::dashboard {

class Cookies {
 public:
  // With https, browsers send them over TLS only and to this host only ("__Host-"). Without, that
  // is not possible: for this machine and for tests.
  explicit Cookies(bool https) : https_(https) {}

  // The value of the request's cookie; empty: it has none.
  std::string Session(const http::HttpRequest& request) const;
  std::string Flow(const http::HttpRequest& request) const;

  // Values of set-cookie. They hold base64url.
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

// Why cookies are not safe where the dashboard listens and is found; empty: they are.
std::string CookieRisk(std::string_view listen, std::string_view public_url);

}  // namespace tollgate::dashboard
