// The Responses surface: POST /v1/responses, translated to chat completions. Stores nothing after
// the request.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface();
// POST /v1/responses/input_tokens: counts the same request and generates nothing.
const Surface& InputTokensSurface();

}  // namespace tollgate::gateway
