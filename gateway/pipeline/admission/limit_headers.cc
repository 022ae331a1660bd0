#include "gateway/pipeline/admission/limit_headers.h"

#include <algorithm>
#include <string_view>

#include "common/base/utc_text.h"
#include "gateway/envelopes/envelope.h"

namespace tollgate::gateway {

namespace {

namespace ratelimit_pb = ratelimit::v1;

std::string NameOf(Family family, std::string_view kind, std::string_view what) {
  std::string name(family == Family::kMessages ? "anthropic-ratelimit-" : "x-ratelimit-");
  if (family == Family::kMessages) std::swap(kind, what);
  return name.append(what).append("-").append(kind);
}

// The time of the reset, rounded up.
std::string ResetTime(int64_t ms, int64_t now_us) {
  return UtcText(now_us + std::max<int64_t>(ms, 0) * 1000 + 999'999, UtcPrecision::kSeconds);
}

}  // namespace

Headers MakeLimitHeaders(Family family, const ratelimit_pb::AcquireResult& result, int64_t now_us) {
  Headers headers;
  const auto append = [&](std::string_view kind, ratelimit_pb::LimitKind limit_kind,
                          const ratelimit_pb::LimitStatus& status) {
    if (status.limit() <= 0) return;
    const bool denied = !result.granted() && result.denied_by() == limit_kind;
    const int64_t reset_ms =
        denied ? RetryAfterSeconds(result.retry_after_ms()) * 1000 : status.reset_ms();
    headers.emplace_back(NameOf(family, kind, "limit"), std::to_string(status.limit()));
    headers.emplace_back(NameOf(family, kind, "remaining"),
                         std::to_string(std::max<int64_t>(status.remaining(), 0)));
    headers.emplace_back(NameOf(family, kind, "reset"), family == Family::kMessages
                                                            ? ResetTime(reset_ms, now_us)
                                                            : FormatReset(reset_ms));
  };
  append("requests", ratelimit_pb::LIMIT_KIND_REQUESTS, result.requests());
  append("tokens", ratelimit_pb::LIMIT_KIND_TOKENS, result.tokens());
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
