// The chat-completions surface: POST /v1/chat/completions.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& ChatSurface();

}  // namespace tollgate::gateway
