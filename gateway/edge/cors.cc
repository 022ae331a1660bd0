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
  response.headers.emplace_back("access-control-allow-methods", "GET, HEAD, POST");
  std::string wanted(request.header("access-control-request-headers"));
  response.headers.emplace_back("access-control-allow-headers",
                                wanted.empty() ? "authorization, content-type" : wanted);
  response.headers.emplace_back("access-control-max-age", "600");
  return response;
}

Headers Cors::ResponseHeaders(const HttpRequest& request) const {
  Headers headers;
  if (!enabled()) return headers;
  headers.emplace_back("vary", "origin");
  const std::string_view origin = request.header("origin");
  if (!Allows(origin)) return headers;
  headers.emplace_back("access-control-allow-origin", origin);
  headers.emplace_back(
      "access-control-expose-headers",
      "x-request-id, request-id, retry-after, x-should-retry, idempotent-replayed, "
      "x-tollgate-cut-by-credit, x-tollgate-model, "
      "x-ratelimit-limit-requests, x-ratelimit-remaining-requests, x-ratelimit-reset-requests, "
      "x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens, "
      "anthropic-ratelimit-requests-limit, anthropic-ratelimit-requests-remaining, "
      "anthropic-ratelimit-requests-reset, anthropic-ratelimit-tokens-limit, "
      "anthropic-ratelimit-tokens-remaining, anthropic-ratelimit-tokens-reset");
  return headers;
}

}  // namespace tollgate::gateway
