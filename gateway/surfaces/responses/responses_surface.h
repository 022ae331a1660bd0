// The Responses surface: POST /v1/responses, translated to chat completions. Stores nothing beyond
// the request.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface();

}  // namespace tollgate::gateway
