// The responses surface: POST /v1/responses, adapted onto chat completions, without any state that
// outlives a request.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface();

}  // namespace tollgate::gateway
