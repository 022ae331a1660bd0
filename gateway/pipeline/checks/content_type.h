// Checks the Content-Type of a request (docs/design/hostile-inputs.md H72).
#pragma once

#include "common/error/error.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

// Fails with 400 for a media type other than JSON or a charset other than UTF-8. A missing
// Content-Type is accepted.
Result<void> CheckContentType(const HttpRequest& request);

}  // namespace tollgate::gateway
