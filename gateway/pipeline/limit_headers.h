// The x-ratelimit-* response headers. See docs/design/wire.md 1.2.
#pragma once

#include <cstdint>
#include <string>

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

// x-ratelimit-{limit,remaining,reset}-{requests,tokens} for the limits that exist. The Messages
// family has names of its own and gets none of these.
Headers MakeLimitHeaders(Family family, const ratelimit::v1::AcquireResult& result);

void AppendHeaders(const Headers& from, Headers& to);

// A duration in the format of the OpenAI API: "250ms", "1s", "6m0s". Rounded up to whole seconds
// from one second on.
std::string FormatReset(int64_t ms);

}  // namespace tollgate::gateway
