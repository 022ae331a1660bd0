// The Messages surface: POST /v1/messages, and the request of POST /v1/messages/count_tokens.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& MessagesSurface();

// Parses the same requests with an optional max_tokens (docs/design/wire.md 6.4). Has no encoders
// because nothing is generated.
const Surface& CountTokensSurface();

}  // namespace tollgate::gateway
