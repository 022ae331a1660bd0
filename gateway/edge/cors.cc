#include "gateway/edge/cors.h"

#include <algorithm>

namespace tollgate::gateway {

bool Cors::Allows(std::string_view origin) const {
  if (origin.empty()) return false;
  return std::any_of(origins_.begin(), origins_.end(), [origin](const std::string& allowed) {
    return allowed == "*" || allowed == origin;
  });
}

bool Cors::IsPreflight(const HttpRequest& request) const {
  return enabled() && request.method == "OPTIONS" &&
         !request.header("access-control-request-method").empty() &&
         Allows(request.header("origin"));
}

HttpResponse Cors::AnswerPreflight(const HttpRequest& request) const {
  HttpResponse response;
  response.status = 204;
  response.headers.emplace_back("access-control-allow-methods", "GET, POST");
  std::string wanted(request.header("access-control-request-headers"));
  response.headers.emplace_back("access-control-allow-headers",
                                wanted.empty() ? "authorization, content-type" : wanted);
  response.headers.emplace_back("access-control-max-age", "600");
  return response;
}

void Cors::AppendHeaders(const HttpRequest& request, std::string& head) const {
  if (!enabled()) return;
  head.append("vary: origin\r\n");
  std::string_view origin = request.header("origin");
  if (!Allows(origin)) return;
  head.append("access-control-allow-origin: ").append(origin).append("\r\n");
  head.append(
      "access-control-expose-headers: x-request-id, request-id, retry-after, "
      "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, "
      "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens\r\n");
}

}  // namespace tollgate::gateway
