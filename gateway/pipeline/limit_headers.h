// What a caller is told about its rate limits. spec: wire.md 1.2.
#pragma once

#include <cstdint>
#include <string>

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

// x-ratelimit-{limit,remaining,reset}-{requests,tokens} for the limits that exist. The Messages
// family has names of its own and gets none of these.
Headers LimitHeaders(Family family, const ratelimit::v1::AcquireResult& result);

// Appends the ones to the others.
void AddHeaders(const Headers& from, Headers& to);

// As the public service writes it: "250ms", "1s", "6m0s". Whole seconds from one second on, rounded
// up.
std::string ResetText(int64_t ms);

}  // namespace tollgate::gateway
