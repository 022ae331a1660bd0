// The response headers that report what is left of the rate limits. See docs/design/wire.md 1.2.
#pragma once

#include <cstdint>
#include <string>

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

// For the limits that exist: x-ratelimit-{limit,remaining,reset}-{requests,tokens} in the OpenAI
// family and anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset} in the Messages family.
// Input and output tokens share one limit. The reset is the time until the limit is full again, as
// the vendors document it. For the limit that refused the request it is the Retry-After, after
// which the request can be admitted. In the Messages family it is a point in time, in whole
// seconds, rounded up. now_us: wall clock.
Headers MakeLimitHeaders(Family family, const ratelimit::v1::AcquireResult& result, int64_t now_us);

void AppendHeaders(const Headers& from, Headers& to);

// A duration in the format of the OpenAI API: "250ms", "1s", "6m0s". Rounded up to whole seconds
// from one second on.
std::string FormatReset(int64_t ms);

}  // namespace tollgate::gateway
