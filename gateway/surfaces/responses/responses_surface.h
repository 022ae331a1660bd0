// The Responses surface: POST /v1/responses, translated to chat completions. Stores nothing beyond
// the request.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface();
// POST /v1/responses/input_tokens: the same request, counted. Generates nothing.
const Surface& InputTokensSurface();
// POST /v1/responses/input_tokens: the same request, counted. Generates nothing.
const Surface& InputTokensSurface();

}  // namespace tollgate::gateway
