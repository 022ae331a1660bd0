// Checks the Content-Type and Content-Encoding of a request (docs/design/hostile-inputs.md H72,
// H73).
#pragma once

#include "common/error/error.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// 400 for a media type other than JSON, a charset other than UTF-8, or any content encoding: bodies
// are never decompressed. A missing Content-Type is accepted.
Result<void> CheckContentType(const HttpRequest& request);

}  // namespace tollgate::gateway
