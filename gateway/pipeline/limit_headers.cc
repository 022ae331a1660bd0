#include "gateway/pipeline/limit_headers.h"

#include <algorithm>
#include <string_view>

namespace tollgate::gateway {

namespace {

void Append(std::string_view kind, const ratelimit::v1::LimitStatus& status, Headers& headers) {
  if (status.limit() <= 0) return;
  const auto add = [&](std::string_view what, std::string value) {
    std::string name = "x-ratelimit-";
    name.append(what).append("-").append(kind);
    headers.emplace_back(std::move(name), std::move(value));
  };
  add("limit", std::to_string(status.limit()));
  add("remaining", std::to_string(std::max<int64_t>(status.remaining(), 0)));
  add("reset", FormatReset(status.reset_ms()));
}

}  // namespace

Headers MakeLimitHeaders(Family family, const ratelimit::v1::AcquireResult& result) {
  Headers headers;
  if (family != Family::kOpenAi) return headers;
  Append("requests", result.requests(), headers);
  Append("tokens", result.tokens(), headers);
  return headers;
}

void AppendHeaders(const Headers& from, Headers& to) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string FormatReset(int64_t ms) {
  if (ms <= 0) return "0s";
  if (ms < 1000) return std::to_string(ms) + "ms";
  const int64_t seconds = (ms + 999) / 1000;
  const std::string rest = std::to_string(seconds % 60) + "s";
  return seconds < 60 ? rest : std::to_string(seconds / 60) + "m" + rest;
}

}  // namespace tollgate::gateway
