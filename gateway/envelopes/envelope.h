// The two error envelopes: the only code that renders an error.
// See docs/contract.md "Envelopes", docs/design/wire.md 9.
#pragma once

#include <string>

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// The response to a request that failed before its response began. The header x-should-retry says
// whether the same request can succeed later (decision 40). Retry-After is sent only when it can
// and the time is known.
HttpResponse RenderError(Family family, const Error& error, const HttpRequest& request);

// The Retry-After value for a wait: whole seconds, rounded up, from 1 to 60 (docs/design/limits.md
// 6).
int64_t RetryAfterSeconds(int64_t wait_ms);

// The message for the client, in the wording of the family (decision 32).
std::string PublicMessage(Family family, const Error& error);

// Only the body. request_id: the client's own X-Request-Id or empty; used by the Messages envelope.
std::string ErrorBody(Family family, const Error& error, std::string_view request_id = {});

}  // namespace tollgate::gateway
