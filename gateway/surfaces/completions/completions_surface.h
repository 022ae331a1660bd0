// POST /v1/completions: legacy text completions. See docs/design/wire.md 3, decisions 17 to 20, 23
// to 25, 30.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& CompletionsSurface();

}  // namespace tollgate::gateway
