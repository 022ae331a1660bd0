// Whether a body claims to be something else than JSON (reliability.md H72, H73).
#pragma once

#include "common/error/error.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// 400 for another media type, a charset other than UTF-8, or any content encoding: nothing is
// inflated. No Content-Type at all is fine.
Result<void> CheckContentType(const HttpRequest& request);

}  // namespace tollgate::gateway
