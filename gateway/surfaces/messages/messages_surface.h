// The Messages surface: POST /v1/messages, and the request of POST /v1/messages/count_tokens.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& MessagesSurface();

// The same requests with max_tokens optional (docs/design/wire.md 6.4). Has no encoders: nothing is
// generated.
const Surface& CountTokensSurface();

}  // namespace tollgate::gateway
