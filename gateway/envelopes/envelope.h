// The two error envelopes: the only code that turns an error into bytes.
// spec: gateway-spec.md "Envelopes", wire.md section 9.
#pragma once

#include <string>

#include "common/error/error.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// The whole answer for a request that failed before its answer began. Retry-After stands in it only
// where a retry makes sense and the time is known.
HttpResponse RenderError(Family family, const Error& error, const HttpRequest& request);

// What the caller reads of the error, in the family's words (decisions.md 32).
std::string PublicMessage(Family family, const Error& error);

// The body alone. request_id is for the Messages family: the caller's own X-Request-Id, or empty.
std::string ErrorBody(Family family, const Error& error, std::string_view request_id = {});

}  // namespace tollgate::gateway
