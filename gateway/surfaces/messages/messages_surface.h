// The Messages surface: POST /v1/messages, and the request half of POST /v1/messages/count_tokens.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& MessagesSurface();

// The same requests, without the max_tokens that they need there (wire.md 6.4). Only its
// ParseRequest is of use: nothing is generated.
const Surface& CountTokensSurface();

}  // namespace tollgate::gateway
