// POST /v1/completions: legacy text completions. spec: wire.md 3, decisions.md 17-20, 23-25, 30.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& CompletionsSurface();

}  // namespace tollgate::gateway
